"""kazoo's side of the rows. It answers a job a line; see process.go."""

import sys
import threading
import time

from kazoo.client import KazooClient

MESSAGE = b"a message of forty bytes, as many are...."
clients = []


def client(i, servers):
    while len(clients) <= i:
        c = KazooClient(hosts=servers, timeout=30)
        c.start()
        clients.append(c)
    return clients[i]


def again(lock, n):
    for _ in range(n):
        lock.acquire()
        lock.release()


def together(tasks):
    """Runs each task in a thread of its own and waits for all."""
    failed = []

    def guarded(task):
        try:
            task()
        except Exception as e:  # told to the reader of the answer
            failed.append(e)

    threads = [threading.Thread(target=guarded, args=(t,), daemon=True) for t in tasks]
    for t in threads:
        t.start()

    def wait():
        for t in threads:
            t.join()
        if failed:
            raise failed[0]

    return wait


def lock(path, ops, workers, sessions, backlog, servers):
    mutex = client(0, servers).Lock(path)
    again(mutex, 1)
    began = time.monotonic_ns()
    again(mutex, ops)
    return ops, time.monotonic_ns() - began


def handover(path, ops, workers, sessions, backlog, servers):
    if workers > 256:
        return None  # a thousand threads of Python measure Python
    client(sessions - 1, servers)
    gate = client(0, servers).Lock(path)
    gate.acquire()
    wait = together([
        lambda i=i: again(clients[i % sessions].Lock(path), ops // workers)
        for i in range(workers)
    ])
    while clients[0].exists(path).numChildren < workers + 1:
        time.sleep(0.01)
    began = time.monotonic_ns()
    gate.release()
    wait()
    return ops, time.monotonic_ns() - began


def shared(path, ops, workers, sessions, backlog, servers):
    c = client(0, servers)
    began = time.monotonic_ns()
    together([lambda: again(c.Lock(path), ops // workers) for _ in range(workers)])()
    return ops, time.monotonic_ns() - began


def put(path, ops, workers, sessions, backlog, servers):
    queue = client(0, servers).Queue(path)
    queue.put(MESSAGE)

    def some():
        for _ in range(ops // workers):
            queue.put(MESSAGE)

    began = time.monotonic_ns()
    together([some] * workers)()
    return ops, time.monotonic_ns() - began


def deliver(path, ops, workers, sessions, backlog, servers):
    c = client(0, servers)
    queue = c.Queue(path)
    queue.put(MESSAGE)
    done = 1
    while done < backlog:
        t = c.transaction()
        for _ in range(min(1000, backlog - done)):
            t.create(path + "/entry-100-", MESSAGE, sequence=True)
        done += len(t.commit())
    began = time.monotonic_ns()
    for _ in range(ops):
        if queue.get() is None:
            raise RuntimeError("the queue is empty")
    return ops, time.monotonic_ns() - began


ROWS = {"lock": lock, "handover": handover, "turns": handover, "shared": shared, "put": put, "deliver": deliver}


def main():
    for line in sys.stdin:
        row, path, ops, workers, sessions, backlog, servers = line.split()
        answer = "none"
        if row in ROWS:
            try:
                result = ROWS[row](path, int(ops), int(workers), int(sessions), int(backlog), servers)
                if result is not None:
                    answer = "ok %d %d" % result
            except Exception as e:
                answer = "failed %r" % e
        print(answer, flush=True)
    for c in clients:
        c.stop()


main()
