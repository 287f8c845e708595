"""Partitions that are deleted and created again with the same names, and a queue that an operator deletes.

Run: python3 partitions.py [--deep] [--planted NAME]

One partition p is created up to K times; its names count from 0 each time. Consumers claim, settle, give back, take, remove the
empty partition, lose answers and sessions as in claims.py. The listing is a step of its own. A request names a message by its
path, so it meets the message that has this name now, whichever incarnation the consumer means. An operator may delete the
queue's directory with everything in it once (--deep); the directory is then created again, with another order znode.
"""
import sys
from search import names, report, search, subsets

LIVE, LATE, SILENT = 0, 1, 2
OLD = (-1, -1)
# consumer: (life, ledger (-1: gone), ledger as known, names it works on, contents it was delivered, view, request)
NEW = (LIVE, 0, 0, 0, 0, (), ())
# view: (order, cursors, listing (incarnation, names) or None, ledgers still to read, names seen in ledgers, content read for Take)
# request: (kind, names, content of the ledger, order, applied, content that a Take has read)

PLANTED = {
    "remove-no-order": "the removal of a partition does not raise the order's version",
    "remove-any": "a partition is removed although a ledger names it; ledgers tell partitions by czxid",
    "settle-unconditional": "a repeated settle does not check the ledger's version",
    "list-first": "the listing is older than the order's version",
    "order-same-name": "after the operator, the new order znode has the old name and counts from 0",
}
# Variants without a violation: they show which rules are not needed for safety when the other rules hold.
SPARE = {
    "by-name": "ledgers and cursors tell partitions by name, all other rules hold",
}


def model(consumers=2, incarnations=2, per=1, cursor=True, operator=False, lost=True, plant=None, versions=5):
    exact = plant in ("order-same-name", "list-first")  # the other variants need no version numbers
    operator = operator or plant == "order-same-name"
    byname = plant == "by-name"
    slot = (1 << per) - 1

    def bits(k, mask):
        """The names of one incarnation, as bits of a ledger."""
        return 0 if k < 0 else mask << (0 if byname else k * per)

    def content(k, mask):
        return 0 if k < 0 else mask << (k * per)

    def path(mask):
        """The names of all incarnations, as names in the directory."""
        out = 0
        while mask:
            out, mask = out | mask & slot, mask >> per
        return out

    def delivers(c):
        """The contents that a live holder works on. A name that is being settled or given back is not among them."""
        if c[0] != LIVE or c[1] < 0:
            return 0
        return sum(1 << n for n in range(c[4].bit_length()) if c[4] >> n & 1 and path(c[3]) >> (n % per) & 1)

    # state: (incarnation or -1, messages, names used, incarnations so far, order, cursors, consumers, the operator may still act)
    def put(state, i, c):
        return state[:6] + (state[6][:i] + (c,) + state[6][i + 1:], state[7])

    def apply(state, i, req):
        p, ex, used, born, order, cur, cs, op = state
        life, led, known, held, got, view, _ = cs[i]
        kind, what, text, at, done, read = req
        if kind in ("claim", "settle", "give") and led < 0:
            return "NoNode on the ledger", state
        if done and kind != "remove" and not (plant == "settle-unconditional" and kind == "settle"):
            return "BadVersion on the ledger or marker", state
        if kind in ("claim", "take", "remove") and at != order and not (plant == "remove-no-order" and kind == "remove"):
            return "BadVersion on the order", state
        here = path(what) & ex if p >= 0 else 0
        if kind == "take":
            if not here:
                return "NoNode", state
            if content(p, here) != read:
                return "VIOLATION: Take deletes %s and has read %s" % (names(content(p, here)), names(read)), state
            if any(max(c[1], 0) & bits(p, here) for c in cs):
                return "VIOLATION: Take won a message that is claimed", state
            return "ok", (p, ex & ~here) + state[2:]
        if kind == "remove":
            if p < 0 or ex:
                return "NoNode" if p < 0 else "NotEmpty", state
            if plant != "remove-no-order":
                order = (order[0], order[1] + 1)
            k = 0 if byname else p
            return "ok", (-1, 0, 0, born, order, cur[:k] + (0,) + cur[k + 1:], cs, op)
        if kind == "claim":
            order = (order[0], order[1] + 1)
            k = (what.bit_length() - 1) // per  # a claim names messages of one incarnation
            cur = cur[:k] + (max(cur[k], path(what).bit_length()),) + cur[k + 1:]
        if kind == "settle":
            if content(p, here) & ~got:
                return "VIOLATION: settle deletes %s, which was not delivered" % names(content(p, here)), state
            ex, got = ex & ~here, got & ~content(p, here)
        return "ok", put((p, ex, used, born, order, cur, cs, op), i, (life, text, known, held, got, view, cs[i][6]))

    def answered(state, i, req, answer):
        p, ex = state[:2]
        life, led, known, held, got, view, _ = state[6][i]
        kind, what, text, at, done, read = req
        if answer == "NoNode on the ledger":
            return put(state, i, NEW)  # the queue was deleted: everything is forgotten, and a new ledger is created
        won = answer == "ok" or answer.startswith("BadVersion on the ledger")
        if kind in ("claim", "take", "remove") and (answer == "BadVersion on the order" or won and kind != "take"):
            view = ()
        if kind == "claim" and won:
            here = path(what) & ex if p >= 0 else 0  # read the messages by their paths
            known, got = text, got | content(p, here)
            held |= sum(1 << n for n in range(what.bit_length()) if what >> n & 1 and here >> (n % per) & 1)
        elif kind in ("settle", "give") and won:
            known = text
            got = delivers((LIVE, 0, 0, held, got))
        return put(state, i, (life, led, known, held, got, view, ()))

    def requests(state, c):
        life, led, known, held, got, view, _ = c
        if view and view[2] is not None and view[0] is not None:
            at, cur, (k, listed), unread, seen, read = view
            free = bits(k, listed) & ~known
            if not unread:
                free &= ~seen
            elif cursor and k >= 0:
                above = cur[0 if byname else k]
                free &= bits(k, slot >> above << above)
            else:
                free = 0
            for part in subsets(free):
                yield ("claim", part, held | part, at, 0, 0), held
            if read and path(read) & path(free):
                yield ("take", bits(k, path(read)), 0, at, 0, read), held
            if k >= 0 and not listed and (plant == "remove-any" or not unread and not (seen | known) & bits(k, slot)):
                yield ("remove", 0, 0, at, 0, 0), held
        for part in subsets(held):
            for kind in ("settle", "give"):
                yield (kind, part, held & ~part, OLD, 0, 0), held & ~part

    def finish(state, i, req, who):
        """Send req; the answer arrives, or is lost, or the request is lost."""
        answer, after = apply(state, i, req)
        if answer.startswith("VIOLATION"):
            yield who, answer[11:]
        elif state[6][i][0] == LATE:
            yield who + " (sent before its lease ended): " + answer, put(after, i, (SILENT, after[6][i][1]) + (0, 0, 0, (), ()))
        else:
            yield who + ": " + answer, answered(after, i, req, answer)
            if lost and answer == "ok":
                yield who + ": applied, the answer is lost", put(after, i, after[6][i][:6] + (req[:4] + (1, req[5]),))
            if lost and not state[6][i][6]:
                yield who + ": the request is lost", put(state, i, state[6][i][:6] + (req,))

    def steps(state):
        p, ex, used, born, order, cur, cs, op = state
        if exact and order[1] > versions:
            return
        for i, c in enumerate(cs):
            life, led, known, held, got, view, req = c
            who = "consumer %d: " % i
            if life == LIVE and not req:
                others = sum(1 << j for j in range(consumers) if j != i and cs[j][1] >= 0)
                if led < 0:
                    yield who + "find the ledger gone", put(state, i, NEW)
                elif not view and plant == "list-first":
                    yield (who + "list incarnation %d: %s" % (p, names(ex)),
                           put(state, i, c[:5] + ((None, 0, (p, ex), 0, 0, 0), ())))
                elif not view:
                    yield (who + "read the order, version %d" % order[1],
                           put(state, i, c[:5] + ((order, cur, None, others, 0, 0), ())))
                else:
                    def see(v):
                        return put(state, i, c[:5] + (v, ()))
                    if view[0] is None:
                        yield who + "read the order, version %d" % order[1], see((order, cur, view[2], others, 0, 0))
                    if view[2] is None:
                        yield who + "list incarnation %d: %s" % (p, names(ex)), see(view[:2] + ((p, ex),) + view[3:])
                    elif not view[5] and p >= 0:
                        for n in range(per):
                            if ex & view[2][1] >> n & 1:
                                yield who + "read %d for Take" % n, see(view[:5] + (content(p, 1 << n),))
                    for j in range(consumers):
                        if view[3] >> j & 1:
                            yield (who + "read ledger %d: %s" % (j, names(max(cs[j][1], 0))),
                                   see(view[:3] + (view[3] & ~(1 << j), view[4] | max(cs[j][1], 0), view[5])))
            if life != SILENT and req:
                yield from finish(state, i, req, who + "repeat %s %s" % (req[0], names(req[1])))
            elif life != SILENT:
                for r, h in requests(state, c):
                    yield from finish(put(state, i, c[:3] + (h,) + c[4:]), i, r, who + "%s %s" % (r[0], names(r[1])))
            if life == LIVE:
                yield who + "its lease ends", put(state, i, (LATE,) + c[1:])
            else:
                rest = [o if not o[5] else o[:5] + (o[5][:3] + (o[5][3] & ~(1 << i),) + o[5][4:], o[6]) for o in cs]
                rest[i] = NEW
                yield who + "the server ends its session", state[:6] + (tuple(rest), op)
        if p < 0 and born < incarnations:
            yield "a producer creates incarnation %d" % born, (born, 0, 0, born + 1) + state[4:]
        if p >= 0 and used < per:
            yield "a producer puts %d" % used, (p, ex | 1 << used, used + 1) + state[3:]
        if op:
            new = (0, 0) if plant == "order-same-name" else (order[0] + 1, 0)
            yield ("the operator deletes the queue; it is created again",
                   (-1, 0, 0, born, new, (0,) * incarnations, tuple((c[0], -1) + c[2:] for c in cs), False))

    def broken(state):
        p, ex, used, born, order, cur, cs, op = state
        for i, (life, led, known, held, got, view, req) in enumerate(cs):
            for j in range(i):
                if led > 0 and cs[j][1] > 0 and led & cs[j][1]:
                    return "ledgers %d and %d both name %s" % (j, i, names(led & cs[j][1]))
                both = delivers(cs[i]) & delivers(cs[j])
                if both:
                    return "consumers %d and %d both deliver %s" % (j, i, names(both))
            if life == LIVE and led >= 0 and not req:
                if led != known:
                    return "ledger %d names %s, and its consumer believes %s" % (i, names(led), names(known))
                if p >= 0 and led & bits(p, ex) & ~held:
                    return "message %s is never delivered: ledger %d names it, and nobody works on it" % (names(ex), i)
        return None

    def canon(state):
        order, cs = state[4], state[6]
        if exact:
            return state
        out = []
        for life, led, known, held, got, view, req in cs:
            if view:
                view = ((0, 0),) + view[1:] if view[0] == order else ()
            if req and req[0] in ("claim", "take", "remove"):
                req = req[:3] + ((0, 0) if req[3] == order else OLD,) + req[4:]
            if life == LATE and not view and not held and not req:
                life, known, got = SILENT, 0, 0
            out.append((life, led, known, held, got, view, req))
        if consumers == 2:
            swap = [c if not c[5] else c[:5] + (c[5][:3] + (c[5][3] >> 1 | (c[5][3] & 1) << 1,) + c[5][4:], c[6]) for c in out[::-1]]
            if repr(swap) < repr(out):
                out = swap
        return state[:4] + ((0, 0), state[5], tuple(out), state[7])

    start = (-1, 0, 0, 0, (0, 0), (0 if cursor else per,) * incarnations, (NEW,) * consumers, operator)
    return start, steps, broken, canon


def run(limit=3_000_000, **kw):
    return lambda: search(*model(**kw), limit=limit)


def main(args):
    cases = [
        ("2 consumers, 2 incarnations of 1 message, cursor", run()),
        ("2 consumers, 2 incarnations of 1 message, no cursor", run(cursor=False)),
        ("the same with cursor, an operator deletes the queue", run(operator=True)),
        ("2 consumers, 3 incarnations of 1 message", run(incarnations=3)),
    ]
    for name, why in SPARE.items():
        cases += [(why + ", an operator deletes the queue", run(plant=name, operator=True)),
                  (why + ", 2 messages, no lost answers", run(plant=name, per=2, lost=False))]
    if "--deep" in args:
        cases += [
            ("3 consumers, 2 incarnations of 1 message, no lost answers", run(consumers=3, lost=False)),
            ("2 consumers, 2 incarnations of 2 messages", run(per=2, limit=8_000_000)),
        ]
    wrong = [(name + " (" + why + ")", run(plant=name)) for name, why in PLANTED.items() if "--planted" not in args or name in args]
    report(cases if "--planted" not in args else [], wrong)


if __name__ == "__main__":
    main(sys.argv[1:])
