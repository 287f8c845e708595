"""Claims in ledgers: consumers, Take, foreign consumers, lost answers and lost sessions, complete for small numbers.

Run: python3 claims.py [--deep] [--planted NAME]

The state. Server: which messages exist, the order znode (identity, version, cursor), a ledger per consumer. Consumer: whether its
lease holds, its own idea of its ledger, the messages that it delivers, its view (what it has read since it read the order
znode), and a request whose answer is missing.

Reads are single steps, so a server that lags is covered: a stale read is an early read. A request is sent when its step happens
or before that, with the same effect, because the sender does nothing in between. All messages exist at the start; a consumer
may claim any name that it has not seen claimed, even a deleted one, so listings of every age are covered.

Versions are compared with the current version only, so the search forgets the numbers. The number of claims, expiries and lost
answers is therefore not limited. The planted errors keep the numbers and limit them.
"""
import sys
from search import names, report, search, subsets

LIVE, LATE, SILENT = 0, 1, 2  # the lease holds; ended, one request may be under way; ended, nothing under way
NOVIEW, NOREQ = (), ()
# consumer: (life, ledger at the server, ledger as the consumer knows it, messages that it delivers, view, request)
NEW = (LIVE, 0, 0, 0, NOVIEW, NOREQ)
# view: (order (identity, version), cursor, ledgers that are still to be read, names seen in ledgers)
# request: (kind, names, content of the ledger, order, has been applied)
OLD = (-1, -1)

PLANTED = {
    "ledgers-first": "the ledgers are read before the order znode",
    "claim-no-check": "a claim does not check the version of the order znode",
    "take-no-check": "a Take does not check the version of the order znode",
    "claim-order-first": "the multi of a claim names the order znode before the ledger",
    "take-order-first": "the multi of a Take names the order znode before the marker",
    "two-streams": "the consumer stops waiting for an answer, and its writes do not check the ledger's version",
    "order-same-name": "the order znode is created again under its old name and counts from 0",
    "cursor-lost": "a new order znode does not keep the cursor",
    "long-lease": "the consumer delivers after its session has ended",
}


def model(consumers, messages, cursor=True, take=True, foreign=True, replace=False, lost=True, plant=None, versions=4):
    """The functions of the model, and its first state."""
    every = (1 << messages) - 1
    exact = plant is not None
    replace = replace or plant in ("order-same-name", "cursor-lost")

    def put(state, i, c, ex=None, order=None, cur=None):
        cs = state[3]
        return (state[0] if ex is None else ex, state[1] if order is None else order,
                state[2] if cur is None else cur, cs[:i] + (c,) + cs[i + 1:])

    def apply(state, i, req):
        """Apply a request at the server. Returns the answer and the state."""
        ex, order, cur, cs = state
        life, led, known, held, view, old = cs[i]
        kind, what, content, at, done = req
        if plant == kind + "-order-first" and at != order:
            return "BadVersion on the order", state
        if done and not (plant == "two-streams" and kind in ("settle", "give")):
            return "BadVersion on the ledger or marker", state
        if kind in ("claim", "take") and at != order and plant != kind + "-no-check":
            return "BadVersion on the order", state
        if kind == "take":
            if not what & ex:
                return "NoNode", state
            if any(what & c[1] for c in cs):
                return "VIOLATION: Take won a message that is claimed", state
            return "ok", put(state, i, cs[i], ex=ex & ~what)
        if kind == "claim":
            order = (order[0], order[1] + 1)
            cur = max(cur, what.bit_length())
        if kind == "settle":
            ex &= ~what
        return "ok", put(state, i, (life, content, known, held, view, old), ex=ex, order=order, cur=cur)

    def answered(state, i, req, answer):
        """The consumer reads the answer."""
        life, led, known, held, view, _ = state[3][i]
        kind, what, content, at, done = req
        won = answer == "ok" or answer.startswith("BadVersion on the ledger")
        if kind == "take" and done and not won:
            return "Take has deleted %s, and the consumer believes that it failed" % names(what)
        if kind in ("claim", "take") and answer == "BadVersion on the order":
            view = NOVIEW
        if kind == "claim" and won:
            known, held = content, held | (what & state[0])  # read the messages: those that answer NoNode are dropped
            # the answer has the new version: no other consumer has claimed since the view was read
            view = (state[1], state[2]) + view[2:] if view and answer == "ok" and (at[0], at[1] + 1) == state[1] else NOVIEW
        elif kind != "take":
            known = content if won else known
        return put(state, i, (life, led, known, held, view, NOREQ))

    def requests(c):
        """The requests that the consumer may send now."""
        life, led, known, held, view, _ = c
        if view and view[0] is not None:
            at, cur, unread, seen = view
            free = every & ~known & ~seen if not unread else every & ~known
            if unread and cursor:
                free = free >> cur << cur  # names above the cursor are unclaimed; the others need the ledgers
            elif unread:
                free = 0
            for part in subsets(free):
                yield ("claim", part, held | part, at, 0), held
                if take and part & (part - 1) == 0:
                    yield ("take", part, 0, at, 0), held
        for part in subsets(held):
            yield ("settle", part, held & ~part, OLD, 0), held & ~part
            yield ("give", part, held & ~part, OLD, 0), held & ~part

    def attempt(state, i, req, held):
        """Send a request for the first time: answered, applied and not answered, or lost."""
        life, led, known, _, view, _ = state[3][i]
        who = "consumer %d: %s %s" % (i, req[0], names(req[1]))
        sent = put(state, i, (life, led, known, held, view, NOREQ))
        answer, after = apply(sent, i, req)
        if answer.startswith("VIOLATION"):
            yield who, answer[11:]
            return
        if life == LATE:
            c = after[3][i]
            yield who + " (sent before its lease ended): " + answer, put(after, i, (SILENT, c[1], 0, 0, NOVIEW, NOREQ))
            return
        yield who + ": " + answer, answered(after, i, req, answer)
        if not lost:
            return
        yield who + ": the request is lost", put(sent, i, sent[3][i][:5] + (req,))
        if answer == "ok":
            yield who + ": applied, the answer is lost", put(after, i, after[3][i][:5] + (req[:4] + (1,),))

    def again(state, i):
        """Repeat a request whose answer is missing."""
        life, led, known, held, view, req = state[3][i]
        who = "consumer %d: repeat %s %s" % (i, req[0], names(req[1]))
        answer, after = apply(state, i, req)
        if answer.startswith("VIOLATION"):
            yield who, answer[11:]
        elif life == LATE:
            c = after[3][i]
            yield who + " (sent before its lease ended): " + answer, put(after, i, (SILENT, c[1], 0, 0, NOVIEW, NOREQ))
        else:
            yield who + ": " + answer, answered(after, i, req, answer)
            if answer == "ok":
                yield who + ": applied, the answer is lost", put(after, i, after[3][i][:5] + (req[:4] + (1,),))
            if plant == "two-streams" and req[0] in ("settle", "give"):
                for later, h in requests(state[3][i]):
                    if later[0] == "claim":  # the claim overtakes the settle, which is applied afterwards
                        answer, after = apply(state, i, later)
                        if answer == "ok":
                            after = answered(after, i, later, answer)
                            yield who + " overtaken by claim %s" % names(later[1]), apply(after, i, req)[1]

    def steps(state):
        ex, order, cur, cs = state
        if exact and order[1] > versions:
            return
        for i, c in enumerate(cs):
            life, led, known, held, view, req = c
            if life == LIVE and not req:
                if not view and plant == "ledgers-first":
                    yield ("consumer %d: list the ledgers" % i,
                           put(state, i, c[:4] + ((None, 0, ((1 << consumers) - 1) & ~(1 << i), 0), NOREQ)))
                elif not view:
                    yield ("consumer %d: read the order, version %d" % (i, order[1]),
                           put(state, i, c[:4] + ((order, cur, ((1 << consumers) - 1) & ~(1 << i), 0), NOREQ)))
                else:
                    for j in range(consumers):
                        if view[2] >> j & 1:
                            yield ("consumer %d: read ledger %d: %s" % (i, j, names(cs[j][1])),
                                   put(state, i, c[:4] + (view[:2] + (view[2] & ~(1 << j), view[3] | cs[j][1]), NOREQ)))
                    if view[0] is None and not view[2]:
                        yield ("consumer %d: read the order, version %d" % (i, order[1]),
                               put(state, i, c[:4] + ((order, cur) + view[2:], NOREQ)))
                    if replace and view[0] == order:
                        new = (0, 0) if plant == "order-same-name" else (order[0] + 1, 0)
                        yield ("consumer %d: replace the order znode" % i,
                               put(state, i, c, order=new, cur=0 if plant == "cursor-lost" else cur))
            if life != SILENT:
                if req:
                    yield from again(state, i)
                else:
                    for r, h in requests(c):
                        yield from attempt(state, i, r, h)
            if life == LIVE and plant != "long-lease":
                yield "consumer %d: its lease ends" % i, put(state, i, (LATE,) + c[1:])
            elif life != LIVE or plant:
                after = NEW if plant != "long-lease" else (LIVE, 0, known, held, NOVIEW, NOREQ)
                rest = [o if not o[4] else o[:4] + (o[4][:2] + (o[4][2] & ~(1 << i), o[4][3]), o[5]) for o in cs]
                rest[i] = after
                yield "consumer %d: the server ends its session" % i, (ex, order, cur, tuple(rest))
        if foreign:
            for n in range(messages):
                if ex >> n & 1:
                    yield "a foreign consumer deletes %d" % n, (ex & ~(1 << n), order, cur, cs)

    def broken(state):
        ex, order, cur, cs = state
        for i, (life, led, known, held, view, req) in enumerate(cs):
            for j in range(i):
                if led & cs[j][1]:
                    return "ledgers %d and %d both name %s" % (j, i, names(led & cs[j][1]))
                if life == LIVE == cs[j][0] and held & cs[j][3]:
                    return "consumers %d and %d both deliver %s" % (j, i, names(held & cs[j][3]))
            if cursor and led >> cur:
                return "ledger %d names %s, above the cursor" % (i, names(led >> cur << cur))
            if life == LIVE:
                if held & ~led:
                    return "consumer %d delivers %s, which its ledger does not name" % (i, names(held & ~led))
                if not req and led != known:
                    return "ledger %d names %s, and its consumer believes %s" % (i, names(led), names(known))
                if not req and known & ~held & ex:
                    return "ledger %d keeps %s, which nobody works on" % (i, names(known & ~held & ex))
        return None

    def canon(state):
        ex, order, cur, cs = state
        if exact:
            return state
        out = []
        for life, led, known, held, view, req in cs:
            if view:  # a request with an old version fails without effect: the consumer starts again
                view = ((0, 0),) + view[1:] if view[0] == order else NOVIEW
            if req and req[0] in ("claim", "take"):
                req = req[:3] + ((0, 0) if req[3] == order else OLD, req[4])
            if life == LATE and not view and not held and not req:
                life, known = SILENT, 0
            out.append((life, led, known, held, view, req))
        by = sorted(range(len(out)), key=lambda i: (out[i][:4], out[i][5], out[i][4][:2] + out[i][4][3:]))
        if by != list(range(len(out))):
            at = {old: new for new, old in enumerate(by)}
            out = [out[i] for i in by]
            out = [c if not c[4] else
                   c[:4] + (c[4][:2] + (sum(1 << at[k] for k in at if c[4][2] >> k & 1), c[4][3]), c[5]) for c in out]
        return (ex, (0, 0), cur, tuple(out))

    start = (every, (0, 0), 0 if cursor else messages, (NEW,) * consumers)
    return start, steps, broken, canon


def run(limit=3_000_000, **kw):
    return lambda: search(*model(**kw), limit=limit)


def main(args):
    cases = [
        ("2 consumers, 2 messages, cursor", run(consumers=2, messages=2, replace=True)),
        ("3 consumers, 1 message, no cursor", run(consumers=3, messages=1, cursor=False)),
        ("3 consumers, 2 messages, cursor, no lost answers, no foreign consumer",
         run(consumers=3, messages=2, lost=False, foreign=False)),
        ("3 consumers, 2 messages, no cursor, no lost answers, no foreign consumer",
         run(consumers=3, messages=2, cursor=False, lost=False, foreign=False)),
        ("2 consumers, 3 messages, cursor, no lost answers", run(consumers=2, messages=3, lost=False)),
    ]
    if "--deep" in args:
        cases += [
            ("2 consumers, 2 messages, no cursor", run(consumers=2, messages=2, cursor=False)),
            ("3 consumers, 2 messages, cursor, no foreign consumer", run(consumers=3, messages=2, foreign=False, limit=8_000_000)),
            ("3 consumers, 2 messages, cursor", run(consumers=3, messages=2, limit=8_000_000)),
            ("2 consumers, 3 messages, cursor", run(consumers=2, messages=3, limit=8_000_000)),
        ]
    wrong = [(name + " (" + why + ")", run(consumers=2, messages=2, foreign=False, plant=name)) for name, why in PLANTED.items()
             if "--planted" not in args or name in args]
    report(cases if "--planted" not in args else [], wrong)


if __name__ == "__main__":
    main(sys.argv[1:])
