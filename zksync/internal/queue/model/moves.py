"""Attempts, Retry and MoveTo: one copy of a message at any time, and a count of its claims that survives crashes.

Run: python3 moves.py [--deep] [--planted NAME]

Two queues: the work queue with its partition of later messages, and the queue for dead letters. Each queue has an order znode
and a ledger per consumer. A worker acks, gives back, retries later (fewer than 3 attempts), moves to the dead letters, or dies.
claims.py checks the races of the reads; here a view is read in one step and ends with the next claim in its queue. Messages
claimed again, and messages of the later partition (which has no cursor), are counted by setData in the claim's own multi:

  attempts = version + 1 in the work queue and the dead letters, and base + version in the later partition,

where base, the number of attempts before, is in the name. The model compares this with the true number of claims.
"""
import sys
from search import report, search

LIVE, LATE, SILENT = 0, 1, 2
MAIN, LATER, DEAD = 0, 1, 2  # the places of a copy; MAIN and LATER are one queue
CAP = (4, 4, 2)  # no copy is claimed more often; ends the search
# copy: (message, serial number of its name, place, base, version, claimed before, true number of claims)
# consumer: (life, ledgers at the server (2), ledgers as known (2), held, views (2), request)
# ledger: sorted tuple of (message, serial); held: sorted tuple of (message, serial, queue, place, attempts)
# request: (kind, held entry or candidate, queue, content of the ledger, no claim since the view, applied)
NEW = (LIVE, ((), ()), ((), ()), (), (None, None), ())

PLANTED = {
    "no-count": "a repeated claim does not raise the message's version",
    "count-later": "the version is raised by a request of its own after the claim",
    "create-first": "Retry creates the later message, and settles in a second request",
    "delete-first": "Retry settles, and creates the later message in a second request",
    "repeat-without-ledger": "a repeated Retry does not check the ledger's version and leaves out the failing delete",
    "repeat-in-new-session": "after the loss of its session the consumer repeats Retry with its new ledger",
}


def two(pair, q, value):
    return (value, pair[1]) if q == 0 else (pair[0], value)


def text(kind, what):
    return "%s message %d (name %d)" % (kind, what[0], what[1])


def model(consumers=2, messages=1, foreign=True, lost=True, cap=CAP, plant=None):
    def put(state, i, c):
        return state[0], state[1], state[2][:i] + (c,) + state[2][i + 1:]

    def find(copies, what):
        for c in copies:
            if c[:2] == what[:2]:
                return c
        return None

    def swap(copies, old, *new):
        return tuple(sorted([c for c in copies if c != old] + list(new)))

    def attempts(copy):
        return copy[3] + copy[4] + (0 if copy[2] == LATER else 1)

    def another(copies, entry, place, true):
        """The copy that Retry or MoveTo creates."""
        serial = 1 + entry[1]
        return (entry[0], serial, place, entry[4] if place == LATER else 0, 0, False, true if place == LATER else 0)

    def apply(state, i, req):
        """Apply a request at the server: the answer and the state."""
        copies, over, cs = state
        kind, what, q, content, fresh, done = req
        c = cs[i]
        copy = find(copies, what)
        if kind == "create":
            return "ok", (swap(copies, None, another(copies, what, LATER, what[4])), over, cs)
        if done:
            if plant == "repeat-without-ledger" and kind == "retry" and not copy:
                return "ok", (swap(copies, None, another(copies, what, LATER, what[4])), over, cs)
            return "BadVersion on the ledger", state
        if kind == "count":
            return "ok", (swap(copies, copy, copy[:4] + (copy[4] + 1,) + copy[5:]) if copy else copies, over, cs)
        if kind == "claim":
            again = what[5] or what[2] == LATER
            if not fresh:
                return "BadVersion on the order", state
            if again and not copy:
                return "NoNode", state
            if copy:
                raised = copy[4] + (again and plant not in ("no-count", "count-later"))
                copies = swap(copies, copy, copy[:4] + (raised, True, copy[6] + 1))
            # the order's version is raised: all views of this queue end
            cs = tuple(o[:4] + (two(o[4], q, None), o[5][:4] + (False,) + o[5][5:] if o[5] and o[5][2] == q else o[5]) for o in cs)
        elif kind in ("ack", "retry", "move"):
            if not copy and kind != "ack":
                return "NoNode", state
            if copy:
                if any(o[0] == LIVE and any(h[:2] == what[:2] for h in o[3]) for j, o in enumerate(cs) if j != i):
                    return "VIOLATION: a consumer deletes a message that another one holds", state
                new = [another(copies, what, LATER if kind == "retry" else DEAD, copy[6])] if kind != "ack" else []
                copies = swap(copies, copy, *new)
                if kind == "ack":
                    over = over[:what[0]] + (plant != "delete-first",) + over[what[0] + 1:]
        c = cs[i]
        return "ok", put((copies, over, cs), i, c[:1] + (two(c[1], q, content),) + c[2:])

    def answered(state, i, req, answer):
        """The consumer reads the answer. A string is a violation."""
        kind, what, q, content, fresh, done = req
        c = state[2][i]
        life, led, known, held, views, _ = c
        won = answer == "ok" or answer == "BadVersion on the ledger"
        if kind == "claim":
            views = two(views, q, None)
        follow = ()
        if won and kind not in ("count", "create"):
            known = two(known, q, content)
        if kind == "create":
            follow = ("ack", what, q, names(held, q), True, 0)
        if plant == "delete-first" and kind == "ack" and what[3] == -1:
            follow = ("create", what, q, (), True, 0)
        if won and kind == "claim":
            copy = find(state[0], what)
            if copy:
                if plant == "count-later" and (what[5] or what[2] == LATER):
                    return put(state, i, (life, led, known, held, views, ("count", what, q, (), True, 0)))
                held, wrong = deliver(held, copy, q)
                if wrong:
                    return wrong
        if kind == "count":
            copy = find(state[0], what)
            if copy:
                held, wrong = deliver(held, copy, q)
                if wrong:
                    return wrong
        return put(state, i, (life, led, known, held, views, follow))

    def deliver(held, copy, q):
        if attempts(copy) != copy[6]:
            return held, "message %d is delivered as attempt %d after %d claims" % (copy[0], attempts(copy), copy[6])
        return tuple(sorted(held + (copy[:2] + (q, copy[2], attempts(copy)),))), None

    def names(held, q, *more):
        return tuple(sorted([h[:2] for h in held if h[2] == q] + [m[:2] for m in more]))

    def requests(c):
        """The requests that a consumer may send now, and what it holds afterwards."""
        life, led, known, held, views, _ = c
        for q in (0, 1):
            for copy in views[q] or ():
                if copy[6] < cap[copy[2]]:
                    yield ("claim", copy, q, names(held, q, copy), True, 0), held
        for h in held:
            rest = tuple(x for x in held if x != h)
            q = h[2]
            left = names(rest, q)
            yield ("ack", h, q, left, True, 0), rest
            yield ("give", h, q, left, True, 0), rest
            if q == 0:
                yield ("move", h, q, left, True, 0), rest
                if h[4] < 3 and plant == "create-first":
                    yield ("create", h, q, (), True, 0), rest
                elif h[4] < 3 and plant == "delete-first":
                    yield ("ack", h[:3] + (-1,) + h[4:], q, left, True, 0), rest
                elif h[4] < 3:
                    yield ("retry", h, q, left, True, 0), rest

    def send(state, i, req, who):
        answer, after = apply(state, i, req)
        life = state[2][i][0]
        if answer.startswith("VIOLATION"):
            yield who, answer[11:]
        elif life == LATE:
            c = after[2][i]
            yield who + " (sent before its lease ended): " + answer, put(after, i, (SILENT, c[1]) + NEW[2:])
        else:
            yield who + ": " + answer, answered(after, i, req, answer)
            if lost and answer == "ok":
                yield who + ": applied, the answer is lost", put(after, i, after[2][i][:5] + (req[:4] + (False, 1),))
            if lost and not state[2][i][5]:
                yield who + ": the request is lost", put(state, i, state[2][i][:5] + (req,))

    def steps(state):
        copies, over, cs = state
        for i, c in enumerate(cs):
            life, led, known, held, views, req = c
            who = "consumer %d: " % i
            if life == LIVE and not req:
                for q in (0, 1):
                    taken = [n for o in cs for n in o[1][q]]
                    free = tuple(m for m in copies if (m[2] == DEAD) == (q == 1) and m[:2] not in taken)
                    if free and views[q] != free:
                        yield who + "look into queue %d" % q, put(state, i, c[:4] + (two(views, q, free), ()))
            if life != SILENT:
                if req:
                    yield from send(state, i, req, who + text("repeat " + req[0], req[1]))
                else:
                    for r, rest in requests(c):
                        yield from send(put(state, i, c[:3] + (rest,) + c[4:]), i, r, who + text(r[0], r[1]))
            if life == LIVE:
                yield who + "its lease ends", put(state, i, (LATE,) + c[1:])
            else:
                new = NEW
                if plant == "repeat-in-new-session" and req and req[0] == "retry":
                    new = NEW[:5] + (req[:3] + ((), True, 0),)
                yield who + "the server ends its session", put(state, i, new)
        if foreign:
            for m in copies:
                if m[2] != LATER:
                    yield (text("a foreign consumer deletes", m),
                           (swap(copies, m), over[:m[0]] + (True,) + over[m[0] + 1:], cs))

    def broken(state):
        copies, over, cs = state
        for m in range(messages):
            count = sum(1 for c in copies if c[0] == m)
            if count > 1:
                return "message %d exists %d times" % (m, count)
            if count and over[m]:
                return "message %d exists again after it was consumed" % m
            working = plant == "delete-first" and any(c[5] and c[5][0] in ("ack", "create") and c[5][1][0] == m for c in cs)
            if not count and not over[m] and not working:
                return "message %d is lost" % m
        for i, (life, led, known, held, views, req) in enumerate(cs):
            for j in range(i):
                for q in (0, 1):
                    if set(led[q]) & set(cs[j][1][q]):
                        return "ledgers %d and %d both name %s" % (j, i, set(led[q]) & set(cs[j][1][q]))
                if life == LIVE == cs[j][0] and {h[:2] for h in held} & {h[:2] for h in cs[j][3]}:
                    return "consumers %d and %d both hold a message" % (j, i)
            if life == LIVE and not req and led != known:
                return "ledger %d names %s, and its consumer believes %s" % (i, led, known)
        return None

    def canon(state):
        copies, over, cs = state
        out = []
        for c in cs:
            if c[0] == LATE and c[4] == (None, None) and not c[3] and not c[5]:
                c = (SILENT, c[1]) + NEW[2:]
            out.append(c)
        return copies, over, tuple(sorted(out, key=repr))

    start = (tuple((m, 0, MAIN, 0, 0, False, 0) for m in range(messages)), (False,) * messages, (NEW,) * consumers)
    return start, steps, broken, canon


def run(limit=3_000_000, **kw):
    return lambda: search(*model(**kw), limit=limit)


def main(args):
    cases = [("2 consumers, 1 message, up to 3 claims", run(cap=(3, 3, 2))),
             ("3 consumers, 1 message, up to 2 claims", run(consumers=3, cap=(2, 2, 1)))]
    if "--deep" in args:
        cases += [("2 consumers, 1 message, up to 4 claims", run()),
                  ("3 consumers, 1 message, up to 3 claims", run(consumers=3, cap=(3, 3, 2), limit=6_000_000)),
                  ("2 consumers, 2 messages", run(messages=2, cap=(2, 2, 1), limit=6_000_000))]
    wrong = [(name + " (" + why + ")", run(plant=name, foreign=False)) for name, why in PLANTED.items()
             if "--planted" not in args or name in args]
    report(cases if "--planted" not in args else [], wrong)


if __name__ == "__main__":
    main(sys.argv[1:])
