"""Goes through the recipes of kazoo and prints what comes of it.

    recipes.py host:port

The lines are the same on every run and on every server that does what it should.
"""

import logging
import sys
import threading

from kazoo.client import KazooClient
from kazoo.exceptions import (
    BadVersionError, KazooException, NodeExistsError, NoNodeError,
    NotEmptyError, RolledBackError, NoAuthError,
)
from kazoo.recipe.cache import TreeCache, TreeEvent
from kazoo.recipe.partitioner import PartitionState
from kazoo.security import make_acl, make_digest_acl

logging.basicConfig(level=logging.CRITICAL)
PATIENCE = 30


class Log:
    """What threads say, until it is printed in an order of its own."""

    def __init__(self):
        self.items = []
        self.changed = threading.Condition()

    def add(self, item):
        with self.changed:
            self.items.append(item)
            self.changed.notify_all()

    def wait(self, n):
        with self.changed:
            if not self.changed.wait_for(lambda: len(self.items) >= n, PATIENCE):
                raise SystemExit("only %r, want %d" % (self.items, n))
            return list(self.items)

    def wait_for(self, item):
        with self.changed:
            if not self.changed.wait_for(lambda: item in self.items, PATIENCE):
                raise SystemExit("only %r, want %r" % (self.items, item))


def main(hosts):
    opened = []

    def connect(**options):
        client = KazooClient(hosts=hosts, timeout=20, **options)
        client.start(timeout=PATIENCE)
        opened.append(client)
        return client

    def thread(target, *args):
        t = threading.Thread(target=target, args=args, daemon=True)
        t.start()
        return t

    def join(*threads):
        for t in threads:
            t.join(PATIENCE)
            if t.is_alive():
                raise SystemExit("a thread hangs")

    def error(call, *args, **kwargs):
        try:
            return "no error: %r" % (call(*args, **kwargs),)
        except KazooException as e:
            return type(e).__name__

    a, b, c = connect(), connect(), connect()

    # Calls.
    print("create", a.create("/calls", b"x"), a.create("/calls/s-", b"", sequence=True),
          a.create("/calls/e-", b"", ephemeral=True, sequence=True))
    path, stat = a.create("/calls/stat", b"abc", include_data=True)
    print("create2", path, stat.version, stat.data_length, stat.ephemeralOwner)
    print("ensure_path", a.ensure_path("/calls/deep/er"), b.exists("/calls/deep/er").numChildren)
    data, stat = b.get("/calls")
    print("get", data, stat.version, stat.cversion, stat.numChildren)
    print("set", b.set("/calls", b"yy", version=0).version, error(b.set, "/calls", b"z", version=0))
    children, stat = b.get_children("/calls", include_data=True)
    print("children", sorted(children), stat.numChildren)
    print("errors", error(a.create, "/calls"), error(a.get, "/none"), error(a.delete, "/calls"),
          error(a.create, "/none/x"), error(a.delete, "/calls/stat", version=4), a.exists("/none"))
    print("sync", a.sync("/calls"), "version", len(a.server_version()) >= 3, a.command(b"ruok"))
    a.delete("/calls/deep", recursive=True)
    print("deleted", b.exists("/calls/deep"))

    # Access.
    owner = connect(auth_data=[("digest", "me:secret")])
    owner.create("/access", b"hidden", acl=[make_digest_acl("me", "secret", all=True), make_acl("world", "anyone", read=False, create=True)])
    print("access", error(a.get, "/access"), owner.get("/access")[0], error(a.set, "/access", b""),
          a.create("/access/child"))
    acls, _ = owner.get_acls("/access")
    print("acls", [(acl.id.scheme, acl.id.id.split(":")[0], acl.perms) for acl in acls])
    a.add_auth("digest", "me:secret")
    print("authenticated", a.get("/access")[0], owner.set_acls("/access", [make_acl("world", "anyone", read=True)]).aversion)

    # Transactions.
    t = a.transaction()
    t.create("/tx", b"1")
    t.set_data("/tx", b"2")
    t.check("/tx", 1)
    t.create("/tx/gone")
    t.delete("/tx/gone")
    results = t.commit()
    print("transaction", results[0], results[1].version, results[2], results[3], results[4], a.get("/tx")[0])
    t = a.transaction()
    t.set_data("/tx", b"3")
    t.check("/tx", 9)
    t.delete("/tx")
    print("rolled back", [type(r).__name__ for r in t.commit()], a.get("/tx")[0])

    # Watches.
    seen = Log()
    a.ensure_path("/watched")

    @b.DataWatch("/watched")
    def data_watch(data, stat, event):
        seen.add((data, stat and stat.version, event and event.type))
        return data != b"last"

    seen.wait(1)
    a.set("/watched", b"one")
    seen.wait(2)
    a.delete("/watched")
    seen.wait(3)
    a.create("/watched", b"two")
    seen.wait(4)
    a.set("/watched", b"last")
    seen.wait(5)
    a.set("/watched", b"unseen")
    print("DataWatch", seen.items)

    names = Log()

    @b.ChildrenWatch("/watched")
    def children_watch(children):
        names.add(sorted(children))
        return len(children) < 2

    names.wait(1)
    a.create("/watched/x")
    names.wait(2)
    a.create("/watched/y")
    names.wait(3)
    a.create("/watched/z")
    print("ChildrenWatch", names.items)

    # Lock.
    order = Log()
    first, second, third = a.Lock("/lock", "a"), b.Lock("/lock", "b"), c.Lock("/lock", "c")
    first.acquire()
    print("Lock", first.contenders(), second.acquire(blocking=False), first.is_acquired)

    def take(lock, name):
        with lock:
            order.add(name)

    tb = thread(take, second, "b")
    waiting(lambda: len(first.contenders()) == 2)
    tc = thread(take, third, "c")
    waiting(lambda: len(first.contenders()) == 3)
    print("contenders", first.contenders())
    first.release()
    join(tb, tc)
    print("in line", order.items, a.get_children("/lock"))

    # Read and write locks.
    r1, r2, w = a.ReadLock("/rw", "r1"), b.ReadLock("/rw", "r2"), c.WriteLock("/rw", "w")
    print("readers", r1.acquire(timeout=PATIENCE), r2.acquire(timeout=PATIENCE), "writer", w.acquire(blocking=False))
    order = Log()
    tw = thread(take, w, "w")
    waiting(lambda: "w" in r1.contenders())
    r1.release()
    r2.release()
    join(tw)
    print("writer", order.items)

    # A lock whose owner's session ends.
    d = connect()
    held = d.Lock("/lost", "d")
    held.acquire()
    order = Log()
    te = thread(take, a.Lock("/lost", "a"), "a")
    waiting(lambda: len(held.contenders()) == 2)
    d.stop()
    join(te)
    print("lost", order.items)

    # Election.
    led = Log()
    one, two = a.Election("/election", "one"), b.Election("/election", "two")
    resign = threading.Event()

    def lead(name):
        led.add(name)
        if name == "one":
            resign.wait(PATIENCE)

    t1 = thread(one.run, lead, "one")
    led.wait(1)
    t2 = thread(two.run, lead, "two")
    waiting(lambda: len(one.contenders()) == 2)
    print("Election", one.contenders())
    resign.set()
    join(t1, t2)
    print("led", led.items)

    # Queues.
    q = a.Queue("/queue")
    q.put(b"normal")
    q.put(b"later", priority=200)
    q.put(b"sooner", priority=1)
    q.put(b"normal too")
    print("Queue", len(q), [b.Queue("/queue").get() for _ in range(5)])

    lq, other = a.LockingQueue("/lockingqueue"), b.LockingQueue("/lockingqueue")
    lq.put(b"one")
    lq.put_all([b"two", b"urgent"], priority=5)
    print("LockingQueue", len(lq), lq.get(PATIENCE), lq.holds_lock(), lq.consume(), other.get(PATIENCE))
    print("released", other.release(), lq.get(PATIENCE), lq.consume(), lq.get(PATIENCE), lq.consume(), lq.get(timeout=0.2), len(lq))

    # Party.
    p1, p2, shallow = a.Party("/party", "p1"), b.Party("/party", "p2"), c.ShallowParty("/shallow", "p3")
    p1.join()
    p2.join()
    shallow.join()
    print("Party", sorted(p1), len(p2), list(shallow))
    p2.leave()
    print("left", sorted(p1), len(p1))

    # Barriers.
    barrier = a.Barrier("/barrier")
    barrier.create()
    passed = Log()
    tw = thread(lambda: passed.add(b.Barrier("/barrier").wait(PATIENCE)))
    print("Barrier", barrier.wait(0.1), passed.items)
    barrier.remove()
    join(tw)
    print("passed", passed.items, barrier.wait(0.1))

    steps = Log()

    def both(client, name):
        double = client.DoubleBarrier("/double", 2, name)
        double.enter()
        steps.add("in")
        steps.wait(2)
        double.leave()
        steps.add("out")

    join(thread(both, a, "da"), thread(both, b, "db"))
    print("DoubleBarrier", steps.items)

    # Counter.
    counters = [client.Counter("/counter", default=5) for client in (a, b, c)]

    def count(counter):
        for _ in range(10):
            counter += 1

    join(*[thread(count, counter) for counter in counters])
    counters[0] -= 3
    print("Counter", counters[1].value, counters[0].pre_value, counters[0].post_value)

    # Semaphore.
    s1, s2, s3 = (client.Semaphore("/semaphore", name, max_leases=2) for client, name in ((a, "s1"), (b, "s2"), (c, "s3")))
    print("Semaphore", s1.acquire(), s2.acquire(), s3.acquire(blocking=False), sorted(s1.lease_holders()))
    order = Log()
    ts = thread(take, s3, "s3")
    s1.release()
    join(ts)
    s2.release()
    print("released", order.items, s1.lease_holders())

    # Partitioner.
    parts = [client.SetPartitioner("/partition", set=range(4), time_boundary=0.2, identifier=name)
             for client, name in ((a, "pa"), (b, "pb"))]
    mine = Log()

    def partition(part):
        while not part.acquired:
            if part.state == PartitionState.RELEASE:
                part.release_set()
            elif part.state == PartitionState.ALLOCATING:
                part.wait_for_acquire(0.1)
            elif part.failed:
                raise SystemExit("the partitioner failed")
        mine.add(len(list(part)))

    join(*[thread(partition, part) for part in parts])
    print("SetPartitioner", sorted(mine.items) in ([2, 2],), sorted(sum((list(p) for p in parts), [])))
    for part in parts:
        part.finish()

    # Cache.
    a.ensure_path("/cache/x")
    events = Log()
    cache = TreeCache(b, "/cache")
    cache.listen(lambda event: events.add((event.event_type, event.event_data and event.event_data.path)))
    cache.start()
    events.wait_for((TreeEvent.INITIALIZED, None))
    a.create("/cache/x/y", b"deep")
    events.wait_for((TreeEvent.NODE_ADDED, "/cache/x/y"))
    a.set("/cache/x/y", b"deeper")
    events.wait_for((TreeEvent.NODE_UPDATED, "/cache/x/y"))
    print("TreeCache", cache.get_data("/cache/x/y").data, cache.get_children("/cache"))
    a.delete("/cache/x/y")
    events.wait_for((TreeEvent.NODE_REMOVED, "/cache/x/y"))
    cache.close()

    for client in opened:
        client.stop()
        client.close()
    e = connect()
    print("left behind", sorted(e.get_children("/party")), e.get_children("/lock"), sorted(e.get_children("/calls")))
    e.stop()
    e.close()
    print("done")


def waiting(condition):
    """Polls, where kazoo has nothing to wait for."""
    pause = threading.Event()
    for _ in range(PATIENCE * 50):
        if condition():
            return
        pause.wait(0.02)
    raise SystemExit("waited in vain")


main(sys.argv[1])
