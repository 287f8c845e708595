"""Lets a test in Go use kazoo's recipes.

It reads commands and answers them as testdata/java/Peer.java does, which says
how. Each handle has a thread, which runs its calls one after another.
"""
import logging
import os
import queue
import sys
import threading
import time

from kazoo.client import KazooClient
from kazoo.exceptions import LockTimeout

clients = {}
recipes = {}
threads = {}
output = threading.Lock()


def tell(number, kind, text=""):
    line = "%s %d %s %s" % (number, time.time_ns(), kind, str(text).replace("\n", " "))
    with output:
        sys.stdout.write(line.strip() + "\n")
        sys.stdout.flush()


class Witness:
    """Knows by the file system whether two hold at once, as Witness.java does."""

    def __init__(self, directory, name):
        self.directory, self.name = directory, name
        self.held = os.path.join(directory, "held")

    def claim(self):
        fd = os.open(self.held, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        os.write(fd, ("%d %s" % (os.getpid(), self.name)).encode())
        os.close(fd)

    def enter(self):
        try:
            self.claim()
        except FileExistsError:
            try:
                with open(self.held) as f:
                    other = f.read()
            except FileNotFoundError:
                other = ""
            if not other or alive(int(other.split(" ")[0])):
                raise RuntimeError('OVERLAP: %s came while "%s" held' % (self.name, other)) from None
            os.unlink(self.held)
            self.claim()
        count = os.path.join(self.directory, "count")
        with open(count) as f:
            n = int(f.read())
        with open(count, "w") as f:
            f.write(str(n + 1))
        with open(os.path.join(self.directory, "order"), "a") as f:
            f.write(self.name + "\n")

    def exit(self):
        os.unlink(self.held)


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


class Lock:
    """kazoo's Lock, ReadLock or WriteLock."""

    def __init__(self, lock):
        self.lock = lock

    def acquire(self):
        if not self.lock.acquire():
            raise RuntimeError("acquire returned false")

    def release(self):
        if not self.lock.release():
            raise RuntimeError("release returned false")

    def try_(self, ms):
        if ms == "0":
            return flag(self.lock.acquire(blocking=False))
        try:
            return flag(self.lock.acquire(timeout=int(ms) / 1000))
        except LockTimeout:
            return flag(False)

    def contenders(self):
        return ",".join(self.lock.contenders())

    def contend(self, n, directory, name, stop):
        witness = Witness(directory, name)
        for i in range(1, int(n) + 1):
            self.acquire()
            witness.enter()
            if i == int(stop):
                tell(0, "holding", name)
                threading.Event().wait()
            witness.exit()
            self.release()
        return n


class Semaphore:
    """kazoo's Semaphore: each acquisition is of one unit."""

    def __init__(self, semaphore):
        self.semaphore = semaphore

    def acquire(self):
        if not self.semaphore.acquire():
            raise RuntimeError("acquire returned false")

    def try_(self, ms):
        if ms == "0":
            return flag(self.semaphore.acquire(blocking=False))
        try:
            return flag(self.semaphore.acquire(timeout=int(ms) / 1000))
        except LockTimeout:
            return flag(False)

    def release(self):
        if not self.semaphore.release():
            raise RuntimeError("release returned false")

    def holders(self):
        return ",".join(sorted(self.semaphore.lease_holders()))


class Election:
    """kazoo's Election, which leads until it is told to close."""

    def __init__(self, election):
        self.election = election
        self.leading, self.end = threading.Event(), threading.Event()
        self.runner = threading.Thread(target=self.run, daemon=True)

    def run(self):
        self.election.run(self.lead)

    def lead(self):
        self.leading.set()
        self.end.wait()
        self.leading.clear()

    def start(self):
        self.runner.start()

    def await_(self, ms):
        return flag(self.leading.wait(int(ms) / 1000))

    def leads(self):
        return flag(self.leading.is_set())

    def participants(self):
        return ",".join(self.election.contenders())

    def close(self):
        self.end.set()
        self.election.cancel()
        self.runner.join()


class Queue:
    """kazoo's Queue."""

    def __init__(self, queue):
        self.queue = queue

    def offer(self, *items):
        for item in items:
            self.queue.put(item.encode())

    def poll(self):
        data = self.queue.get()
        return "nothing" if data is None else "=" + data.decode()

    def urgent(self, item):
        self.queue.put(item.encode(), priority=1)

    def length(self):
        return len(self.queue)


class Barrier:
    """kazoo's Barrier."""

    def __init__(self, barrier):
        self.barrier = barrier

    def set(self):
        self.barrier.create()

    def remove(self):
        self.barrier.remove()

    def wait(self, ms):
        return flag(self.barrier.wait(int(ms) / 1000))


class DoubleBarrier:
    """kazoo's DoubleBarrier, a new one for each round."""

    def __init__(self, client, path, n):
        self.args = client, path, n
        self.barrier = None

    def enter(self, ms):
        client, path, n = self.args
        self.barrier = client.DoubleBarrier(path, n)
        self.barrier.enter()
        return flag(self.barrier.participating)

    def leave(self, ms):
        self.barrier.leave()
        return flag(True)


def flag(value):
    return "true" if value else "false"


def make(kind, client, path, *args):
    if kind == "kazoo-lock":  # args are extra_lock_patterns
        return Lock(client.Lock(path, extra_lock_patterns=args))
    if kind == "kazoo-readlock":
        return Lock(client.ReadLock(path, extra_lock_patterns=args))
    if kind == "kazoo-writelock":
        return Lock(client.WriteLock(path, extra_lock_patterns=args))
    if kind == "kazoo-semaphore":
        return Semaphore(client.Semaphore(path, identifier=args[1], max_leases=int(args[0])))
    if kind == "kazoo-election":
        return Election(client.Election(path, args[0]))
    if kind == "kazoo-queue":
        return Queue(client.Queue(path))
    if kind == "kazoo-barrier":
        return Barrier(client.Barrier(path))
    if kind == "kazoo-doublebarrier":
        return DoubleBarrier(client, path, int(args[0]))
    raise ValueError("there is no " + kind)


def connect(name, servers, timeout):
    client = KazooClient(
        hosts=servers,
        timeout=int(timeout) / 1000,
        connection_retry=dict(max_tries=-1, delay=0.05, max_delay=1),
        command_retry=dict(max_tries=-1, delay=0.05, max_delay=1),
    )
    client.start(timeout=30)
    clients[name] = client


def close(name):
    client = clients.pop(name)
    client.stop()
    client.close()


def new(name, kind, client, path, *args):
    recipes[name] = make(kind, clients[client], path, *args)


def call(name, method, *args):
    if method in ("try", "await"):
        method += "_"
    return getattr(recipes[name], method)(*args)


COMMANDS = {"connect": connect, "close": close, "new": new, "call": call}


def serve(tasks):
    while True:
        number, verb, args = tasks.get()
        try:
            result = COMMANDS[verb](*args)
            tell(number, "ok", "" if result is None else result)
        except BaseException as failure:
            tell(number, "error", "%s: %s" % (type(failure).__name__, failure))


def main():
    logging.disable(logging.CRITICAL)
    for line in sys.stdin:
        number, verb, *args = line.rstrip("\n").split(" ")
        thread = args[0] if verb in ("new", "call") else "client " + args[0]
        if thread not in threads:
            threads[thread] = queue.Queue()
            threading.Thread(target=serve, args=(threads[thread],), daemon=True).start()
        threads[thread].put((number, verb, args))
    os._exit(0)


if __name__ == "__main__":
    main()
