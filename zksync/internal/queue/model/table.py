"""The claim table with its cursors, as the engine has it: claims, settles, recovery, Take, skipped messages, and the wake-ups.

Run: python3 table.py [--deep] [--planted NAME]
     python3 table.py --limits   what the engine does not promise

claims.py has the protocol that reads all ledgers. Here the states of the messages are in the claim table, the data of the order
znode, and the ledgers are read only for a recovery. A value is one consumer of the engine. It has three threads, which share what
the value knows:

  look    reads the order znode, the directory of the ledgers and the messages, recovers, and picks messages
  ledger  sends one transaction after another: claims, settles and give-backs
  take    removes a picked message without a claim

Each request is one step at the server. A server that lags is covered: a stale read is an early read. Versions are compared with
the present version only, so a state says "fresh" instead of a number. Numbers of deleted ledgers are relative to the present one.

Properties:
  - no two values deliver a message at the same time, and no Take wins a claimed message
  - a value knows what its ledger has, and the outcome of each transaction
  - each delivery of a message has at least the attempts of the one before, and more if that one ended with Nack, Retry or a crash
  - whenever a message waits, and a live value could read it, steps of the values alone lead to its delivery ("stuck" otherwise)
"""
import sys
from typing import NamedTuple

from search import liveness, names, report, subsets

LIVE, LATE, DEAD = 0, 1, 2  # the lease holds; it has ended, a request may be under way; the session has ended, or the value is closed
UNPUT, HERE, GONE = 0, 1, 2  # a message
LISTING, ORDER, LEDGERS = 1, 2, 4  # what a value must read again: messages, order znode, directory of the ledgers


NEW = 9  # so many ledgers or more are missed by a table that was made without a predecessor


class Value(NamedTuple):
    life: int = LIVE
    blind: int = 0  # messages that it may not read
    ledger: int = 0  # at the server
    unread: int = 0  # claimed
    held: int = 0  # delivered and not settled
    drop: int = 0  # claimed, and found to be gone
    back: int = 0  # claimed, and to be given back without a delivery
    waiting: int = 0  # listed or returned, as far as it knows
    skipped: int = 0
    gone: int = 0  # messages that are gone and may have an entry
    known: tuple = ()  # state of the order znode: (fresh, how many ledgers were deleted since its directory was read)
    newest: int = 0  # the same for the last read of the directory
    stale: int = LISTING | ORDER | LEDGERS
    moved: bool = False  # its listing was made with another order znode
    look: tuple = ()  # see look_steps
    request: tuple = ()  # see Request
    take: tuple = ()  # (message, fresh, applied)
    table: tuple = ()  # as it was read; for planted errors only


class Request(NamedTuple):
    kind: str
    what: int
    passed: int = 0  # of a claim
    sent: bool = False  # an answer is missing
    fresh: bool = False  # the state that it relies on is the present one
    lag: int = 0  # of that state
    done: bool = False  # applied
    last: bool = False  # it was the last write of the order znode
    seen: bool = False  # the value has read the order znode since it was applied


class State(NamedTuple):
    messages: tuple
    attempts: tuple  # (least attempts of the next delivery, of each message)
    missed: int  # how many deletions of ledgers the table has not taken into account
    cursors: tuple  # of each partition: its last claimed message, or -1
    entries: tuple  # of each message: () or (claimed, deliveries that have ended)
    values: tuple
    left: tuple  # how many (sessions may end, answers may be lost, foreign steps may come, values may start again)


WRITES = ("claim", "nack", "back", "retry")  # the order znode

def small(values=2, messages=1, ends=0, lost=0, **more):
    return dict(values=values, messages=messages, ends=ends, lost=lost, **more)


CASES = [
    ("2 values, 1 message, new values, answers lost, a value starts again", small(ends=1, lost=1, starts=1, new=True)),
    ("2 values, 2 messages, one claim each, answers lost", small(messages=2, ends=1, lost=1, cap=1)),
    ("2 values, 2 messages, Nack", small(messages=2, ends=1)),
    ("3 values, 1 message, two sessions end", small(values=3, ends=2)),
    ("3 values, 1 message, answers lost", small(values=3, ends=1, lost=1, cap=1)),
    ("3 values, 2 messages, no Nack, one claim each", small(values=3, messages=2, ends=1, nack=False, cap=1)),
    ("3 values, 2 messages, two sessions end, one claim each", small(values=3, messages=2, ends=2, cap=1)),
    ("3 values, 1 message, the ledgers are read one by one", small(values=3, ends=1, chunks=True)),
    ("2 values, 2 messages, Take", small(messages=2, take=True, cap=1)),
    ("2 values, 1 message, Take, answers lost", small(take=True, ends=1, lost=1)),
    ("2 values, 1 message, Retry, answers lost", small(retry=True, ends=1, lost=1)),
    ("2 values, 2 messages, one value may not read the first", small(messages=2, blind=(1,), ends=1, cap=1)),
    ("2 values, 2 messages, foreign consumer", small(messages=2, foreign=1, ends=1, cap=1)),
    ("2 values, 2 priorities, the more urgent message comes later",
     small(messages=2, partitions=(0, 1), behind=True, put=1, ends=1, cap=1)),
    ("3 values, 1 message, Close", small(values=3, close=True, ends=1)),
    ("2 values, 2 messages, an operator deletes the order znode", small(messages=2, foreign=1, operator=True, cap=1)),
    ("2 values, 1 message, an operator deletes the order znode, a session ends", small(ends=1, foreign=1, operator=True)),
]

DEEP = [
    ("2 values, 2 messages, an operator deletes the order znode, a session ends",
     small(messages=2, ends=1, foreign=1, operator=True, cap=1)),
    ("2 values, 2 messages, answers lost", small(messages=2, ends=1, lost=1)),
    ("2 values, 2 messages, two sessions end, two answers are lost", small(messages=2, ends=2, lost=2)),
    ("3 values, 2 messages", small(values=3, messages=2, ends=1)),
    ("3 values, 2 messages, answers lost, one claim each", small(values=3, messages=2, ends=1, lost=1, cap=1)),
    ("3 values, 3 messages, no Nack", small(values=3, messages=3, ends=1, nack=False, cap=1)),
    ("3 values, 1 message, Take, Retry, Close, foreign consumer, answers lost",
     small(values=3, take=True, retry=True, close=True, foreign=1, ends=1, lost=1)),
    ("2 values, 2 messages, Take, Retry, one value may not read the first, answers lost",
     small(messages=2, take=True, retry=True, blind=(1,), ends=1, lost=1)),
]

# What the engine does not promise, with a case that shows the effect.
LIMITS = {
    "own-names": ("a producer that names its messages itself puts one behind the cursor",
                  small(values=1, messages=2, behind=True, put=1)),
}

PLANTED = {
    "next-keeps-count": ("the state after a transaction has the number of deleted ledgers of the state before it",
                         small(messages=2, ends=1, lost=1, cap=1)),
    "passed-at-claim": ("the messages that a cursor passes are looked up when the claim starts, not at the pick",
                        small(values=1, messages=2, take=True)),
    "half-new-table": ("a recovery marks the names in ledgers only if the new table has nothing of the partition",
                       small(messages=2, foreign=1, operator=True)),
    "new-order-no-listing": ("a value keeps its listing when the order znode is another one",
                             small(ends=1, foreign=1, operator=True)),
    "claim-no-version": ("a claim does not check the version of the order znode", small()),
    "take-no-version": ("a Take does not check the version of the order znode", small(take=True)),
    "nack-no-version": ("a give-back writes the table at any version", small(messages=2, new=True)),
    "close-no-version": ("Close writes the table at any version", small(messages=2, close=True, new=True)),
    "recovery-no-version": ("a recovery writes the table at any version", small(values=3, ends=1)),
    "order-first": ("the order znode is the first operation of a transaction, the ledger the second", small(lost=1)),
    "no-ledger-version": ("a transaction does not check the version of the ledger", small(lost=1)),
    "outcome-assumed": ("a value takes a transaction without an answer for done", small(lost=1)),
    "ledgers-first": ("a recovery reads the ledgers before the table", small(values=3, ends=1)),
    "recovery-counts-now": ("a recovery writes the number of deleted ledgers as of its end", small(values=3, ends=2, nack=False)),
    "recovery-frees-all": ("a recovery frees the messages of living values", small(values=3, ends=1)),
    "recovery-no-listing": ("a recovery looks at entries only, and not at messages up to the cursor", small(ends=1)),
    "recovery-no-count": ("a recovery does not count the delivery", small(ends=1)),
    "give-back-forgets": ("a give-back removes the entry instead of making it returned", small()),
    "nack-no-count": ("Nack does not count the delivery", small()),
    "gone-after-nack": ("a value that has given a message back removes its entry", small(messages=2, cap=3)),
    "claim-drops-count": ("a claim of a returned message starts its count again", small()),
    "retry-no-count": ("the name of a message of Retry has no count", small(retry=True)),
    "no-passed": ("the cursor moves past a free message that a Take has picked or that is skipped", small(values=1, messages=2, take=True)),
    "one-cursor": ("all partitions share a cursor", small(values=1, messages=2, partitions=(0, 1), behind=True, put=1)),
    "cursor-for-retry": ("the messages of Retry have a cursor, although a later one may come first",
                         small(values=1, messages=2, retry=True)),
    "skip-keeps-claim": ("a value keeps its claim on a message that it may not read", small(blind=(1,))),
    "no-apply": ("returned messages do not wait again", small(ends=1)),
    "no-requeue": ("messages of a refused claim do not wait again", small(messages=2, ends=1, nack=False, cap=1)),
    "no-order-watch": ("an idle value does not watch the order znode", small(blind=(1,))),
    "no-ledgers-watch": ("an idle value does not watch the directory of the ledgers", small(ends=1)),
    "count-before-watch": ("the number of deleted ledgers is read before the watch is set", small(values=3, ends=2, nack=False)),
    "no-listing-watch": ("an idle value does not watch the messages", small(put=1)),
    "set-older": ("an answer that comes late brings an older state back", small(blind=(1,), lost=1)),
    "close-counts-all": ("Close takes all deleted ledgers into account, and not its own alone", small(values=3, ends=1, close=True, cap=1)),
    "no-lease": ("the server may end the session of a value that still delivers", small(ends=1)),
}


class Model:
    def __init__(self, values=2, messages=2, partitions=None, retry=False, take=False, nack=True, close=False, blind=(), chunks=False,
                 ends=1, lost=1, foreign=0, starts=0, put=0, behind=False, operator=False, cap=2, new=False, plant=()):
        self.n, self.count = values, messages * (2 if retry else 1)
        self.first = messages  # messages from here on are copies of Retry, in a partition without a cursor
        self.partition = tuple(partitions or (0,) * messages) + (-1,) * (self.count - messages)
        self.retry, self.take, self.nack, self.close, self.chunks = retry, take, nack, close, chunks
        self.behind, self.operator, self.cap = behind, operator, cap
        self.plant = (plant,) if isinstance(plant, str) else plant
        self.order = sorted(range(self.count), key=lambda m: (self.partition[m], m))
        self.every = (1 << self.count) - 1
        # The last messages are put later, or any messages if a producer chooses names itself.
        there = messages if behind else messages - put
        at = tuple(HERE if m < there else UNPUT for m in range(self.count))
        if behind:
            at = tuple(UNPUT if m < put else HERE if m < messages else UNPUT for m in range(self.count))
        blind = tuple(blind) + (0,) * (values - len(blind))
        # Unless the values are new, they were idle, and the messages come now.
        one = Value() if new else Value(known=(True, 0), stale=LISTING)
        self.start = State(at, (1,) * self.count, 0, (-1,) * (max(self.partition) + 1), ((),) * self.count,
                           tuple(one._replace(blind=b) for b in blind), (ends, lost, foreign, starts))
        self.exact = any(p in ("nack-no-version", "close-no-version") for p in self.plant)

    # The claim table.

    def by_cursor(self, m):
        return self.partition[m] >= 0 or "cursor-for-retry" in self.plant

    def at(self, m):
        return 0 if "one-cursor" in self.plant else max(self.partition[m], 0)

    def free(self, s, m):
        if s.entries[m]:
            return not s.entries[m][0]
        return not (self.by_cursor(m) and m <= s.cursors[self.at(m)])

    def free_of(self, s, mask):
        return sum(1 << m for m in range(self.count) if mask >> m & 1 and self.free(s, m))

    def claim(self, s, what, passed):
        cursors, entries = list(s.cursors), list(s.entries)
        for m in range(self.count):
            if not what >> m & 1:
                continue
            e = entries[m]
            if e and not e[0] or not self.by_cursor(m):
                entries[m] = (True, 0 if "claim-drops-count" in self.plant or not e else e[1])
            elif m > cursors[self.at(m)]:
                cursors[self.at(m)] = m
        s = s._replace(cursors=tuple(cursors), entries=tuple(entries))
        for m in range(self.count):
            if passed >> m & 1 and not self.free(s, m) and not what >> m & 1:
                s = self.edit(s, m, (False, 0))
        return s

    def edit(self, s, m, entry):
        return s._replace(entries=s.entries[:m] + (entry,) + s.entries[m + 1:])

    def give_back(self, s, what, ended):
        for m in range(self.count):
            if what >> m & 1:
                if "give-back-forgets" in self.plant:
                    s = self.edit(s, m, ())
                else:
                    s = self.edit(s, m, (False, (s.entries[m][1] if s.entries[m] else 0) + ended))
        return s

    def forget(self, s, gone):
        return s._replace(entries=tuple(() if gone >> m & 1 else e for m, e in enumerate(s.entries)))

    # Changes of a state.

    def put(self, s, i, v):
        return s._replace(values=s.values[:i] + (v,) + s.values[i + 1:])

    def written(self, s):
        """The order znode was written: no known state is fresh any more, and its watches fire."""
        out = []
        for v in s.values:
            out.append(v._replace(
                known=(False, v.known[1]) if v.known else (),
                stale=v.stale | (0 if "no-order-watch" in self.plant else ORDER),
                look=(v.look[0], False) + v.look[2:] if v.look and v.look[0] != "dir" else v.look,
                request=v.request._replace(fresh=False, last=False) if v.request else (),
                take=(v.take[0], False, v.take[2]) if v.take else ()))
        return s._replace(values=tuple(out))

    def listed(self, s):
        """The directory of the messages has changed: the watches on it fire."""
        if "no-listing-watch" in self.plant:
            return s
        return s._replace(values=tuple(v._replace(stale=v.stale | LISTING) for v in s.values))

    def deleted(self, s, counted=False):
        """A ledger was deleted."""
        out = []
        for v in s.values:
            look = v.look
            if look and look[0] == "dir":
                look = ("dir", look[1] + 1) + look[2:]
            elif look and look[0] in ("state", "recover"):
                look = look[:2] + (look[2] + 1,) + look[3:]
            out.append(v._replace(
                known=(v.known[0], v.known[1] + 1) if v.known else (),
                newest=v.newest + 1 if v.life == LIVE else 0,
                stale=v.stale | (0 if "no-ledgers-watch" in self.plant else LEDGERS),
                look=look,
                request=v.request._replace(lag=v.request.lag + 1) if v.request and v.request.sent else v.request))
        return s._replace(values=tuple(out), missed=s.missed if counted else s.missed + 1)

    def remove(self, s, what):
        return self.listed(s._replace(messages=tuple(GONE if what >> m & 1 else x for m, x in enumerate(s.messages))))

    def here(self, s):
        return sum(1 << m for m, x in enumerate(s.messages) if x == HERE)

    def picked(self, v):
        mask = v.unread | v.held | v.drop | v.back
        if v.request:
            mask |= v.request.what
        if v.look and v.look[0] == "picked":
            mask |= v.look[2]
        if v.take:
            mask |= 1 << v.take[0]
        return mask

    def set_known(self, v, fresh, lag, newer=True):
        """orderZnode.set. newer says that the state is not older than the one that is known."""
        if v.known and v.known[0] and fresh or not newer:
            return v, False
        if "next-keeps-count" not in self.plant:
            lag = min(lag, v.newest)
        return v._replace(known=(fresh, lag), look=self.other(v.look)), True

    def other(self, look):
        """The look when another state becomes known: the state that it has read is not the known one any more."""
        return look[:3] + (False,) + look[4:] if look and look[0] in ("state", "recover") else look

    # The thread that looks. Its states:
    #   ("dir", lag[, held])                   the ledgers were listed and are watched
    #   ("state", fresh, lag, same[, held])    the order znode was read; same: it is the state that the value knows
    #   ("recover", fresh, lag, same, held, unread, listed)  ledgers were read, except the unread ones
    #   ("picked", fresh, messages, passed)    the messages are to be claimed

    def look_steps(self, s, i):
        v = s.values[i]
        who = "value %d: " % i
        look = v.look
        if not look:
            busy = v.request and v.request.kind == "claim" and (not self.take or v.take)
            if busy or not v.stale and v.known and not (v.known[0] and self.pickable(s, v)):
                return
            if v.stale & LEDGERS:
                early = (self.ledgers(s),) if "ledgers-first" in self.plant else ()
                stale = v.stale if "count-before-watch" in self.plant else v.stale & ~LEDGERS
                yield True, who + "list the ledgers", self.put(s, i, v._replace(
                    stale=stale, known=(), newest=0, look=("dir", 0) + early))
            elif not v.known or v.stale & ORDER:
                yield True, who + "read the order znode", self.put(s, i, self.read(s, v, v.known[1] if v.known else 0, ()))
            else:
                yield True, who + "look", self.put(s, i, v._replace(look=("state",) + v.known + (True,)))
        elif look[0] == "dir":
            if "count-before-watch" in self.plant:
                v = v._replace(stale=v.stale & ~LEDGERS)
            if v.known and not v.stale & ORDER:
                yield True, who + "look", self.put(s, i, v._replace(look=("state",) + v.known + (True,) + look[2:]))
            else:
                lag = look[1] if v.stale & ORDER else 0
                yield True, who + "read the order znode", self.put(s, i, self.read(s, v, lag, look[2:]))
        elif look[0] == "state":
            yield from self.state_steps(s, i, v, who)
        elif look[0] == "recover":
            yield from self.recover_steps(s, i, v, who)
        elif look[0] == "picked" and not v.request:
            yield from self.claim_steps(s, i, v, who)

    def read(self, s, v, lag, early):
        v = v._replace(stale=v.stale & ~ORDER, look=(), newest=min(v.newest, lag))
        if self.exact:
            v = v._replace(table=(s.cursors, s.entries))
        v, same = self.set_known(v, True, lag)
        if v.request and v.request.done:
            v = v._replace(request=v.request._replace(seen=True))
        return v._replace(look=("state", True, lag, same or v.known == (True, lag)) + early)

    def ledgers(self, s):
        mask = 0
        for v in s.values:
            mask |= v.ledger
        return mask

    def returned(self, s, v):
        """The messages that the table makes wait."""
        if "no-apply" in self.plant:
            return 0
        return sum(1 << m for m, e in enumerate(s.entries) if e and not e[0]) & ~self.picked(v) & ~v.skipped & ~v.gone

    def pickable(self, s, v):
        can = self.free_of(s, (v.waiting | self.returned(s, v)) & ~v.skipped & ~self.picked(v))
        return sum(1 << m for m in range(self.count) if can >> m & 1 and self.next_attempt(s, m) <= self.cap)

    def state_steps(self, s, i, v, who):
        _, fresh, lag, same = v.look[:4]
        if v.moved and fresh and "new-order-no-listing" not in self.plant:
            # Messages that it has forgotten, because they were claimed, are free in the new table.
            v = v._replace(moved=False, stale=v.stale | LISTING, waiting=0)
        if v.stale & LISTING and not (fresh and self.pickable(s, v)):
            yield True, who + "list the messages", self.put(s, i, v._replace(
                stale=v.stale & ~LISTING, waiting=self.here(s) & ~v.skipped & ~self.picked(v)))
        elif not fresh:
            yield True, who + "look again", self.put(s, i, v._replace(look=()))
            # It may pick a message, and the claim is refused.
            yield False, who + "its claim is refused", self.put(s, i, v._replace(look=(), known=() if same else v.known))
        elif lag != s.missed:
            others = sum(1 << j for j in range(self.n))
            if len(v.look) > 4:
                look = ("recover", fresh, lag, same, v.look[4], 0, self.here(s))
            elif self.chunks:
                look = ("recover", fresh, lag, same, 0, others, 0)
            else:
                look = ("recover", fresh, lag, same, self.ledgers(s), 0, self.here(s))
            yield True, who + "read the ledgers: %s" % names(look[4]), self.put(s, i, v._replace(look=look))
        elif not same:
            yield True, who + "look again", self.put(s, i, v._replace(look=()))
        else:
            yield from self.pick_steps(s, i, v, who)

    def pick_steps(self, s, i, v, who):
        can = self.pickable(s, v)
        v = v._replace(look=(), waiting=self.free_of(s, v.waiting | self.returned(s, v)))
        if not can:
            yield True, who + "finds nothing", self.put(s, i, v)
            return
        mask = 0
        first = next(m for m in self.order if can >> m & 1)
        busy = v.request and v.request.kind == "claim"
        if busy and (v.take or v.blind >> first & 1):
            yield True, who + "finds nothing for a Take", self.put(s, i, v)
        if not busy:
            for m in self.order:
                if not can >> m & 1 or self.partition[m] != self.partition[first]:
                    continue
                mask |= 1 << m
                passed = self.passed(s, v, mask)
                yield True, who + "pick %s" % names(mask), self.put(s, i, v._replace(
                    look=("picked", True, mask, passed), waiting=v.waiting & ~mask))
        if self.take and not v.take:
            if not v.blind >> first & 1:
                yield False, who + "Take picks %d" % first, self.put(s, i, v._replace(
                    take=(first, True, False), waiting=v.waiting & ~(1 << first)))

    def passed(self, s, v, mask):
        """The free messages that a cursor must not swallow."""
        if "no-passed" in self.plant:
            return 0
        mine = v.skipped | (1 << v.take[0] if v.take else 0)
        return self.free_of(s, mine & ~mask)

    def recover_steps(self, s, i, v, who):
        _, fresh, lag, same, held, unread, there = v.look
        if unread:
            for j in range(self.n):
                if unread >> j & 1:
                    rest = unread & ~(1 << j)
                    look = ("recover", fresh, lag, same, held | s.values[j].ledger, rest, self.here(s) if not rest else 0)
                    yield True, who + "read ledger %d" % j, self.put(s, i, v._replace(look=look))
            return
        if not fresh and "recovery-no-version" not in self.plant:
            known = () if same and v.known else v.known
            yield True, who + "recovery: BadVersion", self.put(s, i, v._replace(look=(), known=known))
            return
        after = self.recover(s, v, held, there)._replace(missed=0 if "recovery-counts-now" in self.plant else lag)
        after = self.written(after)
        w = after.values[i]._replace(look=(), gone=v.gone)
        now = self.put(after, i, self.set_known(w, True, after.missed)[0])
        yield True, who + "recovery", now
        if s.left[1]:
            late = self.spend(self.put(after, i, w._replace(known=() if same else w.known)), 1)
            yield False, who + "recovery: applied, the answer is lost", late
            yield False, who + "recovery: the request is lost", self.spend(
                self.put(s, i, v._replace(look=(), known=() if same else v.known)), 1)

    def recover(self, s, v, held, there):
        if "recovery-frees-all" in self.plant:
            held = v.ledger
        more = 0 if "recovery-no-count" in self.plant else 1
        for m in range(self.count):
            e, mine = s.entries[m], held >> m & 1
            if e and e[0] and not mine:
                s = self.edit(s, m, (False, e[1] + more))
            elif not e and there >> m & 1 and not mine and not self.free(s, m) and "recovery-no-listing" not in self.plant:
                s = self.edit(s, m, (False, more))
        # A new order znode knows nothing of the claims that were made before.
        blank = not any(s.entries) and all(c < 0 for c in s.cursors)
        for m in range(self.count):
            if held >> m & 1 and (blank or "half-new-table" not in self.plant) and self.free(s, m):
                s = self.edit(s, m, (True, 0))
        return s

    # The thread that writes the ledger.

    def claim_steps(self, s, i, v, who):
        _, fresh, mask, passed = v.look
        if "passed-at-claim" in self.plant and fresh:
            passed = self.passed(s, v, mask)
        v = v._replace(look=(), request=Request("claim", mask, passed, fresh=fresh))
        if not fresh and "claim-no-version" not in self.plant:
            yield True, who + "claim %s: refused" % names(mask), self.refused(self.put(s, i, v), i)
        else:
            yield from self.send(self.put(s, i, v), i, who)

    def refused(self, s, i):
        v = s.values[i]
        known = v.known if v.known and v.known[0] else ()
        if v.request.kind == "claim":
            waiting = v.waiting if "no-requeue" in self.plant else v.waiting | v.request.what
            return self.put(s, i, v._replace(request=(), waiting=waiting, known=known))
        return self.put(s, i, v._replace(request=v.request._replace(sent=False, fresh=False, lag=0), known=known))

    def apply(self, s, i):
        """Apply the request of a value at the server: the answer and the state."""
        v, r = s.values[i], s.values[i].request
        if "order-first" in self.plant and r.kind in WRITES and not r.fresh:
            return "order", s
        if r.done and "no-ledger-version" not in self.plant:
            return "ledger", s
        if r.kind in WRITES and not r.fresh and r.kind + "-no-version" not in self.plant:
            return "order", s
        if r.kind in ("ack", "retry") and not r.what & self.here(s):
            return "NoNode", s
        m = r.what.bit_length() - 1
        if r.kind in WRITES:
            after = self.forget(s, v.gone)
            if not r.fresh and self.exact and v.table:
                after = after._replace(cursors=v.table[0], entries=v.table[1])
            if r.kind == "claim":
                after = self.claim(after, r.what, r.passed)
            elif r.kind == "nack":
                after = self.give_back(after, r.what, 0 if "nack-no-count" in self.plant else 1)
                after = self.least(after, m, 1)
            elif r.kind == "back":
                after = self.give_back(after, r.what, 0)
            lag = s.values[i].request.lag
            after = self.written(after)
        else:
            after, lag = s, r.lag
        if r.kind in ("ack", "retry"):
            for j, o in enumerate(s.values):
                if j != i and o.life == LIVE and o.held & r.what:
                    return "VIOLATION: value %d deletes message %d, which value %d holds" % (i, m, j), s
            after = self.remove(after, r.what)
        if r.kind == "retry":
            copy, times = m + self.first, s.attempts[m]
            after = after._replace(
                messages=after.messages[:copy] + (HERE,) + after.messages[copy + 1:],
                attempts=after.attempts[:copy] + (times,) + after.attempts[copy + 1:])
            after = self.least(after, copy, 1)
        w = after.values[i]
        ledger = w.ledger | r.what if r.kind == "claim" else w.ledger & ~r.what
        w = w._replace(ledger=ledger, request=r._replace(sent=True, fresh=False, lag=lag, done=True, last=r.kind in WRITES))
        return "ok", self.put(after, i, w)

    def least(self, s, m, more):
        return s._replace(attempts=s.attempts[:m] + (s.attempts[m] + more,) + s.attempts[m + 1:])

    def answered(self, s, i, answer):
        v, r = s.values[i], s.values[i].request
        if answer == "order":
            return self.refused(s, i)
        if answer == "NoNode":
            return self.put(s, i, v._replace(request=(), drop=v.drop | r.what, gone=v.gone | r.what))
        newer = not r.seen or "set-older" in self.plant
        if r.kind in WRITES:
            v, _ = self.set_known(v, r.last, r.lag, newer)
            if self.exact:
                v = v._replace(table=(s.cursors, s.entries))
        kind = r.kind
        v = v._replace(request=())
        if kind == "claim":
            v = v._replace(unread=v.unread | r.what)
        elif kind in ("nack", "back"):
            v = v._replace(waiting=v.waiting | r.what & ~v.skipped, gone=v.gone | (r.what if "gone-after-nack" in self.plant else 0))
        elif kind in ("ack", "retry", "drop"):
            v = v._replace(gone=v.gone | r.what)
        return self.put(s, i, v)

    def send(self, s, i, who):
        """Send the request of a value for the first time with a state, or again."""
        v, r = s.values[i], s.values[i].request
        who += "%s%s %s" % ("repeat " if r.sent else "", r.kind, names(r.what))
        if not r.sent and r.kind in WRITES:
            if not v.known:  # current reads the order znode
                r = r._replace(fresh=True, lag=0) if r.kind != "claim" else r._replace(lag=0)
                v, _ = self.set_known(v, True, 0)
            else:
                fresh = v.known[0] if r.kind != "claim" else r.fresh
                r = r._replace(fresh=fresh, lag=v.known[1])
            s = self.put(s, i, v._replace(request=r))
        answer, after = self.apply(s, i)
        if answer.startswith("VIOLATION"):
            yield True, who, answer[11:]
            return
        if v.life == LATE:
            yield True, who + " (late): " + answer, self.put(after, i, after.values[i]._replace(request=(), look=()))
            return
        done = self.answered(after, i, answer)
        yield True, who + ": " + answer, done
        if s.left[1]:
            if answer == "ok":
                yield False, who + ": applied, the answer is lost", self.spend(after, 1)
            if not r.sent and "outcome-assumed" in self.plant:
                yield False, who + ": the request is lost", self.spend(self.answered(s, i, "ok"), 1)
            elif not r.sent:
                yield False, who + ": the request is lost", self.spend(self.put(s, i, v._replace(request=r._replace(sent=True))), 1)

    def spend(self, s, which, n=1):
        return s._replace(left=s.left[:which] + (s.left[which] - n,) + s.left[which + 1:])

    def next_attempt(self, s, m):
        e = s.entries[m]
        base = s.attempts[m - self.first] if m >= self.first else 0
        return 1 + (0 if "retry-no-count" in self.plant else base) + (e[1] if e else 0)

    # All steps. Each is (a step that the values make by themselves, its text, the next state).

    def local(self, s, v):
        """Whether the next step of the thread that looks needs no server. Such a step comes at once: no other step depends on it."""
        if v.life != LIVE:
            return False
        if v.look and v.look[0] == "state":
            _, fresh, lag, same = v.look[:4]
            return fresh and lag == s.missed and not (v.stale & LISTING and not self.pickable(s, v))
        return not v.look and bool(v.known) and v.known[0] and not v.stale & (LEDGERS | ORDER) and (
            bool(v.stale) or self.pickable(s, v)) and not (v.request and v.request.kind == "claim")

    def steps(self, s):
        local = [i for i, v in enumerate(s.values) if self.local(s, v)]
        if local:  # one of them, whatever the numbers of the values are
            yield from self.look_steps(s, min(local, key=lambda i: hash(self.plain(s, s.values[i]))))
            return
        for i, v in enumerate(s.values):
            who = "value %d: " % i
            if v.life == DEAD:
                if s.left[3]:
                    yield False, who + "starts again", self.spend(self.put(s, i, Value(blind=v.blind)), 3)
                continue
            if v.life == LATE:
                if v.request and v.request.sent or v.request and v.request.kind != "claim":
                    yield from self.send(s, i, who)
                if v.look and v.look[0] == "recover" and not v.look[5]:
                    for own, text, after in self.recover_steps(s, i, v, who):
                        if "BadVersion" not in text and "lost" not in text:
                            yield own, text + " (late)", self.put(after, i, after.values[i]._replace(look=(), known=()))
                yield True, who + "the server ends its session", self.ended(s, i)
                continue
            yield from self.look_steps(s, i)
            yield from self.value_steps(s, i, v, who)
            if s.left[0]:
                after = v._replace(life=LATE, held=0, unread=0, drop=0, back=0, known=(), waiting=0, skipped=0, gone=0, stale=0)
                if v.look and (v.look[0] != "recover" or v.look[5]):
                    after = after._replace(look=())
                now = s
                for m in range(self.count):
                    if v.held >> m & 1:
                        now = self.least(now, m, 1)
                yield False, who + "its lease ends", self.spend(self.put(now, i, after), 0)
                if "no-lease" in self.plant:
                    yield False, who + "the server ends its session", self.spend(self.deleted(self.put(s, i, v._replace(ledger=0))), 0)
        yield from self.foreign_steps(s)

    def ended(self, s, i):
        v = s.values[i]
        s = self.put(s, i, Value(life=DEAD, blind=v.blind, stale=0, take=()))
        return self.deleted(s)

    def value_steps(self, s, i, v, who):
        for m in range(self.count):
            if v.unread >> m & 1:
                yield self.deliver(s, i, v, m, who)
                break  # in order
        if v.request:
            if v.request.sent or v.request.kind != "claim":
                yield from self.send(s, i, who)
        else:
            if v.drop:
                yield from self.send(self.put(s, i, v._replace(drop=0, request=Request("drop", v.drop))), i, who)
            if v.back:
                yield from self.send(self.put(s, i, v._replace(back=0, request=Request("back", v.back))), i, who)
            for m in range(self.count):
                if not v.held >> m & 1:
                    continue
                for kind in ("ack", "nack", "retry"):
                    if kind == "nack" and not self.nack or kind == "retry" and (not self.retry or m >= self.first):
                        continue
                    w = v._replace(held=v.held & ~(1 << m), request=Request(kind, 1 << m))
                    for _, text, after in self.send(self.put(s, i, w), i, who):
                        yield False, text, after
            if self.close:
                yield from self.close_steps(s, i, v, who)
        if v.take:
            yield from self.take_steps(s, i, v, who)

    def deliver(self, s, i, v, m, who):
        bit = 1 << m
        v = v._replace(unread=v.unread & ~bit)
        if s.messages[m] != HERE:
            return True, who + "message %d is gone" % m, self.put(s, i, v._replace(drop=v.drop | bit, gone=v.gone | bit))
        if v.blind & bit:
            back = v.back if "skip-keeps-claim" in self.plant else v.back | bit
            return True, who + "skip %d" % m, self.put(s, i, v._replace(skipped=v.skipped | bit, back=back))
        text = who + "deliver %d" % m
        for j, o in enumerate(s.values):
            if j != i and o.life == LIVE and o.held & bit:
                return True, text, "values %d and %d both have message %d" % (j, i, m)
        times = self.next_attempt(s, m)
        if times < s.attempts[m] and not self.operator:
            return True, text, "message %d is delivered as attempt %d, after at least %d" % (m, times, s.attempts[m] - 1)
        s = s._replace(attempts=s.attempts[:m] + (times,) + s.attempts[m + 1:])
        return True, text, self.put(s, i, v._replace(held=v.held | bit))

    def close_steps(self, s, i, v, who):
        """Close deletes the ledger, and gives back the messages in it."""
        if v.look and v.look[0] == "picked" or v.take:
            return
        fresh = not v.known or v.known[0]
        if not fresh and "close-no-version" not in self.plant:
            return  # it reads the order znode again
        gave = s._replace(cursors=v.table[0], entries=v.table[1]) if not fresh else s
        gave = self.give_back(self.forget(gave, v.gone), v.ledger, 0)
        after = self.written(self.deleted(gave, counted=True))
        if "close-counts-all" in self.plant:
            after = after._replace(missed=0)
        yield False, who + "Close", self.put(after, i, Value(life=DEAD, blind=v.blind, stale=0))

    def take_steps(self, s, i, v, who):
        m, fresh, done = v.take
        bit = 1 << m
        if done or not bit & self.here(s):
            yield True, who + "Take %d: its outcome" % m, self.put(s, i, v._replace(take=(), gone=v.gone | bit))
            return
        yield True, who + "Take %d is given up" % m, self.put(s, i, v._replace(take=(), waiting=v.waiting | bit))
        if not fresh and "take-no-version" not in self.plant:
            known = v.known if v.known and v.known[0] else ()
            yield True, who + "Take %d: refused" % m, self.put(s, i, v._replace(take=(), waiting=v.waiting | bit, known=known))
            return
        if self.ledgers(s) & bit:
            yield True, who + "Take %d" % m, "Take has won message %d, which is claimed" % m
            return
        after = self.remove(s, bit)
        w = after.values[i]
        yield False, who + "Take %d" % m, self.put(after, i, w._replace(take=(), gone=w.gone | bit))
        if s.left[1]:
            later = self.put(after, i, w._replace(take=(m, fresh, True)))
            yield False, who + "Take %d: applied, the answer is lost" % m, self.spend(later, 1)

    def foreign_steps(self, s):
        unput = [m for m in range(self.first) if s.messages[m] == UNPUT]
        for p in set(self.partition[m] for m in unput):
            m = next(m for m in unput if self.partition[m] == p)
            put = s._replace(messages=s.messages[:m] + (HERE,) + s.messages[m + 1:])
            yield False, "a producer puts %d" % m, self.listed(put)
        if s.left[2]:
            for m in range(0 if self.operator else self.count):
                if s.messages[m] == HERE:
                    yield False, "a foreign consumer deletes %d" % m, self.spend(self.remove(s, 1 << m), 2)
            if self.operator:
                # A value creates another order znode, without claims.
                blank = s._replace(cursors=(-1,) * len(s.cursors), entries=((),) * self.count)
                blank = self.deleted(self.written(blank))
                blank = blank._replace(missed=NEW, values=tuple(v._replace(moved=v.life == LIVE) for v in blank.values))
                yield False, "an operator deletes the order znode", self.spend(blank, 2)

    # For the search.

    def broken(self, s):
        for i, v in enumerate(s.values):
            for j in range(i):
                if v.ledger & s.values[j].ledger:
                    return "ledgers %d and %d both name %s" % (j, i, names(v.ledger & s.values[j].ledger))
                if v.life == LIVE == s.values[j].life and v.held & s.values[j].held:
                    return "values %d and %d both have %s" % (j, i, names(v.held & s.values[j].held))
            if not self.operator:
                for m in range(self.count):
                    if v.ledger >> m & 1 and s.messages[m] == HERE and self.free(s, m):
                        return "message %d is in ledger %d, and the table says that it is free" % (m, i)
            if v.life == LIVE and not v.request:
                mine = v.unread | v.held | v.drop | v.back
                if mine != v.ledger and "skip-keeps-claim" not in self.plant:
                    return "ledger %d names %s, and its value believes %s" % (i, names(v.ledger), names(mine))
        return None

    def wanting(self, s):
        """The messages that must be deliverable: they are here, no live value has them, and a live value could read them."""
        mask = 0
        for m in range(self.count):
            if s.messages[m] == HERE and self.next_attempt(s, m) <= self.cap:
                if any(v.life == LIVE and v.held >> m & 1 for v in s.values):
                    continue
                if any(v.life == LIVE and (v.request and v.request.what >> m & 1 and v.request.kind in ("ack", "retry")
                                           or v.take and v.take[0] == m) for v in s.values):
                    continue
                if any(v.life == LIVE and not v.blind >> m & 1 for v in s.values):
                    mask |= 1 << m
        return mask

    def plain(self, s, v):
        """The value without what makes no difference."""
        if v.life == LATE and not v.request and not v.look:
            return Value(life=LATE, blind=v.blind, ledger=v.ledger, stale=0, take=v.take)
        if v.life == LIVE:
            entries = sum(1 << m for m, e in enumerate(s.entries) if e)
            return v._replace(gone=v.gone & entries, waiting=v.waiting & ~v.skipped)
        return v

    def canon(self, s):
        out = [self.plain(s, v) for v in s.values]
        by = sorted(range(self.n), key=lambda i: hash(out[i]))
        if self.chunks:
            at = {old: new for new, old in enumerate(by)}
            for i, v in enumerate(out):
                if v.look and v.look[0] == "recover":
                    unread = sum(1 << at[j] for j in at if v.look[5] >> j & 1)
                    out[i] = v._replace(look=v.look[:5] + (unread,) + v.look[6:])
        return s._replace(values=tuple(out[i] for i in by))


def run(limit=3_000_000, **kw):
    def one():
        m = Model(**kw)
        return liveness(m.start, m.steps, m.broken, m.canon, m.wanting, limit=limit)
    return one


def main(args):
    def wanted(group):
        return [("%s (%s)" % (name, why), run(plant=name, **case)) for name, (why, case) in group.items()
                if "--planted" not in args or name in args]

    if "--limits" in args:
        return report([], wanted(LIMITS))
    cases = CASES + (DEEP if "--deep" in args else [])
    report([] if "--planted" in args else [(title, run(limit=20_000_000, **case)) for title, case in cases],
           wanted(PLANTED))


if __name__ == "__main__":
    main(sys.argv[1:])
