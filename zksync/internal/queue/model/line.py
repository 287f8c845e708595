"""The line of idle consumers: a free message always meets a consumer that is awake.

Run: python3 line.py [--deep] [--planted NAME]

Every consumer has room for one message. A consumer without a message looks for one; if it finds none, it joins the line, lists
the line, watches its two nearest predecessors, and, if it is first or second, watches the directory of messages and the claims.
The first claims at once. The second claims when its timer (250 ms) has fired. A claim deletes the consumer's contender in the
claim's own multi: a consumer that holds messages is not in line. A watch fires once. A frozen consumer takes no step, and its
session goes on until the server ends it.

Protocol steps are those that the consumers make by themselves. Everything else may or may not happen: a Put, a settle, a give
back, a freeze, a thaw, the end of a session. Two properties are checked:
  rest      a state without a protocol step has no free message, or no consumer that is idle and not frozen
  progress  the protocol steps, without claims, have no cycle: from every state a claim or rest is reached
"""
import sys
import time
from search import names, report, search

LOOK, TRY, JOIN, LINE, ARM, LIST, READ, DECIDE, CLAIM, WAIT, BUSY = range(11)
IDLE = (LOOK, False, 0, (), False, False, 0, False, 0)
# consumer: (pc, frozen, role, predecessors listed, watches messages, watches claims, watches predecessors (mask), woken, names)
# message: GONE, FREE, or the consumer that has claimed it
GONE, FREE = -2, -1

PLANTED = {
    "one-predecessor": "a consumer watches only its nearest predecessor",
    "no-second": "the second does not watch the messages",
    "stay-in-line": "a claim moves the contender to the back, and a consumer without room stays in line",
    "list-then-watch": "the messages are listed before the watch is set",
    "no-claims-watch": "nobody watches the claims for messages that are given back",
    "no-look-after-join": "a consumer that joins waits without looking again",
}


def model(consumers=3, messages=1, frozen=1, plant=None):
    everyone = range(consumers)

    def change(state, i, **kw):
        pc, ice, role, preds, wm, wc, wp, woken, found = state[2][i]
        c = (kw.get("pc", pc), kw.get("ice", ice), kw.get("role", role), kw.get("preds", preds), kw.get("wm", wm),
             kw.get("wc", wc), kw.get("wp", wp), kw.get("woken", woken), kw.get("found", found))
        return state[0], state[1], state[2][:i] + (c,) + state[2][i + 1:]

    def fire(state, messages=False, claims=False, left=-1):
        """Fire the watches on the messages, on the claims, or on the contender of the consumer that left."""
        for i in everyone:
            _, _, _, _, wm, wc, wp, _, _ = state[2][i]
            if messages and wm:
                state = change(state, i, wm=False, woken=True)
            if claims and wc:
                state = change(state, i, wc=False, woken=True)
            if left >= 0 and wp >> left & 1:
                state = change(state, i, wp=wp & ~(1 << left), woken=True)
        return state

    def leave(state, i):
        if i not in state[1]:
            return state
        state = (state[0], tuple(k for k in state[1] if k != i), state[2])
        return fire(state, left=i)

    def own(state, n, by):
        return state[0][:n] + (by,) + state[0][n + 1:], state[1], state[2]

    def listed(state):
        return sum(1 << n for n in range(messages) if state[0][n] != GONE)

    def unclaimed(state, mask):
        return sum(1 << n for n in range(messages) if mask >> n & 1 and state[0][n] in (GONE, FREE))

    def claim(state, i, found):
        """Claim the first of the names found. None: another consumer was faster."""
        n = (found & -found).bit_length() - 1
        if state[0][n] != FREE:
            return None
        state = own(state, n, i)
        inline = i in state[1]
        state = leave(state, i)
        if plant == "stay-in-line" and inline:
            state = (state[0], state[1] + (i,), state[2])
        return change(state, i, pc=BUSY, role=0, preds=(), wm=False, wc=False, wp=0, woken=False, found=0)

    def protocol(state):
        """The steps that consumers make by themselves: (label, next state, is a claim)."""
        own_, line, cs = state
        for i in everyone:
            pc, ice, role, preds, wm, wc, wp, woken, found = cs[i]
            who = "consumer %d: " % i
            if ice:
                continue
            if pc == LOOK:
                found = unclaimed(state, listed(state))
                yield who + "look: %s free" % names(found), change(state, i, pc=TRY if found else JOIN, found=found), False
            elif pc in (TRY, CLAIM):
                after = claim(state, i, found)
                if after:
                    yield who + "claim", after, True
                else:  # the version has changed, or the message is gone
                    yield who + "claim fails", change(state, i, pc=LOOK if pc == TRY else LINE, found=0), False
            elif pc == JOIN:
                after = state if i in line else (own_, line + (i,), cs)
                yield who + "join the line", change(after, i, pc=LINE), False
            elif pc == LINE:
                at = line.index(i)
                near = line[max(0, at - (1 if plant == "one-predecessor" else 2)):at]
                yield who + "list the line, position %d" % at, change(state, i, pc=ARM, role=min(at, 2), preds=near), False
            elif pc == ARM:
                if any(k not in line[:line.index(i)] for k in preds):  # a new contender of k has another name, further back
                    yield who + "a predecessor is gone", change(state, i, pc=LINE), False
                    continue
                watch = role == 0 or role == 1 and plant != "no-second"
                look = plant != "no-look-after-join"
                yield (who + "watch the predecessors",
                       change(state, i, pc=LIST if watch and look else WAIT, preds=(), wp=sum(1 << k for k in preds),
                              wm=wm or watch and not look, wc=wc or watch and not look), False)
            elif pc == LIST:
                seen = listed(state)
                yield (who + "list the messages: %s" % names(seen),
                       change(state, i, pc=READ, wm=plant != "list-then-watch", found=seen), False)
            elif pc == READ:
                free = unclaimed(state, found)
                yield (who + "read the ledgers: %s free" % names(free),
                       change(state, i, pc=DECIDE, wm=True, wc=plant != "no-claims-watch", found=free), False)
            elif pc == DECIDE:
                if not found:
                    yield who + "wait", change(state, i, pc=WAIT, role=0), False
                else:
                    yield who + ("its timer fires" if role else "decide to claim"), change(state, i, pc=CLAIM, role=0), False
            elif pc == WAIT and woken:
                yield who + "wake up", change(state, i, pc=LINE, woken=False), False

    def world(state):
        """Everything else that may happen."""
        own_, line, cs = state
        for n in range(messages):
            if own_[n] == GONE:
                yield "a producer puts %d" % n, fire(own(state, n, FREE), messages=True)
            elif own_[n] >= 0 and not cs[own_[n]][1]:
                i = own_[n]
                after = change(state, i, pc=LINE if i in line else LOOK)
                yield "consumer %d: settle %d" % (i, n), own(after, n, GONE)
                yield "consumer %d: give %d back" % (i, n), fire(own(after, n, FREE), claims=True)
            elif own_[n] == FREE:
                yield "a foreign consumer deletes %d" % n, own(state, n, GONE)
        for i in everyone:
            if cs[i][1]:
                yield "consumer %d thaws" % i, change(state, i, ice=False)
            elif sum(c[1] for c in cs) < frozen:
                yield "consumer %d freezes" % i, change(state, i, ice=True)
            after = (own_, line, cs[:i] + (IDLE,) + cs[i + 1:])
            for n in range(messages):
                if own_[n] == i:
                    after = own(after, n, FREE)
            yield "the server ends the session of consumer %d" % i, fire(leave(after, i), claims=True)

    def steps(state):
        for label, after, _ in protocol(state):
            yield label, after
        yield from world(state)

    def broken(state):
        if FREE not in state[0] or any(True for _ in protocol(state)):
            return None
        for i in everyone:
            if not state[2][i][1] and i not in state[0]:
                return "at rest, a message is free and consumer %d is idle" % i
        return None

    def canon(state):
        """Number the consumers by their places in line, and the others by their states."""
        own_, line, cs = state
        cs = tuple(c if all(k in line for k in c[3]) else c[:3] + ((-1,),) + c[4:] for c in cs)  # -1: a contender that is gone
        by = list(line) + sorted((i for i in everyone if i not in line), key=lambda i: (cs[i], [o == i for o in own_]))
        if by == list(everyone):
            return own_, line, cs
        at = {old: new for new, old in enumerate(by)}
        at[-1], at[GONE] = -1, GONE
        return (tuple(at[o] for o in own_), tuple(range(len(line))),
                tuple(cs[i][:3] + (tuple(at[k] for k in cs[i][3]),) + cs[i][4:6] +
                      (sum(1 << at[k] for k in everyone if cs[i][6] >> k & 1),) + cs[i][7:] for i in by))

    return ((GONE,) * messages, (), (IDLE,) * consumers), steps, broken, canon, protocol


def run(limit=3_000_000, **kw):
    def go():
        start, steps, broken, canon, protocol = model(**kw)
        seen = []

        def look(state):
            seen.append(state)
            return broken(state)

        found = search(start, steps, look, canon, limit)
        return found if found.violation or not found.complete else progress([start] + seen, protocol, canon, found)
    return go


def progress(states, protocol, canon, found):
    """Report a cycle of protocol steps without a claim, if there is one: take away states without such a step again and again."""
    began = time.process_time()
    before, left, idle = {}, {}, []
    for s in states:
        after = [canon(t) for _, t, claim in protocol(s) if not claim]
        left[s] = len(after)
        for t in after:
            before.setdefault(t, []).append(s)
        if not after:
            idle.append(s)
    done = 0
    while idle:
        done += 1
        for s in before.get(idle.pop(), ()):
            left[s] -= 1
            if not left[s]:
                idle.append(s)
    found.seconds += time.process_time() - began
    if done < len(states):
        found.violation = "%d states may go round without a claim" % (len(states) - done)
    return found


def main(args):
    cases = [("2 consumers, 1 message, 1 frozen", run(consumers=2)),
             ("3 consumers, 1 message, 1 frozen", run())]
    if "--deep" in args:
        cases += [("2 consumers, 2 messages, 1 frozen", run(consumers=2, messages=2)),
                  ("3 consumers, 2 messages, 1 frozen", run(messages=2, limit=6_000_000)),
                  ("4 consumers, 1 message, 1 frozen", run(consumers=4, limit=6_000_000))]
    wrong = [(name + " (" + why + ")", run(plant=name, messages=2 if name == "stay-in-line" else 1)) for name, why in PLANTED.items()]
    wrong += [("two-frozen (the first and the second are frozen: the third waits until one session ends)", run(frozen=2))]
    if "--planted" in args:
        cases, wrong = [], [w for w in wrong if w[0].split()[0] in args]
    report(cases, wrong)


if __name__ == "__main__":
    main(sys.argv[1:])
