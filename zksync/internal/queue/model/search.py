"""Breadth-first search through the states of a model. The models in this directory use it.

A model gives three functions:
  steps(state)   yields (label, next state); a next state that is a string is a violation
  broken(state)  returns a string if the state violates an invariant
  canon(state)   returns the representative of all states that differ only in irrelevant ways
"""
import sys
import time


class Result:
    """The outcome of one search."""

    def __init__(self, states, complete, seconds, depth, violation=None, schedule=()):
        self.states, self.complete, self.seconds, self.depth = states, complete, seconds, depth
        self.violation, self.schedule = violation, schedule

    def __str__(self):
        size = "%d states, depth %d, %.1f s of CPU" % (self.states, self.depth, self.seconds)
        if self.violation:
            lines = ["VIOLATION: %s (%s)" % (self.violation, size)]
            return "\n".join(lines + ["    %2d. %s" % (n + 1, s) for n, s in enumerate(self.schedule)])
        return ("no violation, complete: " if self.complete else "no violation up to the limit: ") + size


def search(start, steps, broken, canon=lambda s: s, limit=2_000_000):
    """Visit the reachable states, nearest first. A violation comes with a shortest schedule."""
    began = time.process_time()
    origin, start = start, canon(start)
    seen = {start: None}
    layer, depth = [start], 0

    def schedule(state, last=None):
        """The labels on the way to state. The way is walked again without canon, so that every consumer keeps its number."""
        path = []
        while seen[state] is not None:
            path.append(state)
            state = seen[state]
        state, labels = origin, []
        for target in path[::-1]:
            label, state = next((l, s) for l, s in steps(state) if not isinstance(s, str) and canon(s) == target)
            labels.append(label)
        return labels + ([next(l for l, s in steps(state) if s == last)] if last else [])

    def result(complete, violation=None, path=()):
        return Result(len(seen), complete, time.process_time() - began, depth, violation, path)

    while layer:
        following = []
        for state in layer:
            for label, after in steps(state):
                if isinstance(after, str):
                    return result(False, after, schedule(state, after))
                after = canon(after)
                if after in seen:
                    continue
                seen[after] = state
                wrong = broken(after)
                if wrong:
                    return result(False, wrong, schedule(after))
                following.append(after)
            if len(seen) > limit:
                return result(False)
        layer, depth = following, depth + 1
    return result(True)


def liveness(start, steps, broken, canon, wanting, limit=2_000_000):
    """Search, and check that what a state wants can always happen.

    steps yields (own, label, next state): own steps are those that the modelled values make by themselves, without a fault, a
    request of a caller or another client. wanting(state) returns a mask. Each of its bits must be absent in a state that own
    steps lead to. Otherwise the violation is "stuck".
    """
    began = time.process_time()
    origin, start = start, canon(start)
    number, states, origins, own_before, want, depth = {start: 0}, [start], [None], [[]], [wanting(start)], [0]

    def result(complete, violation=None, path=()):
        return Result(len(states), complete, time.process_time() - began, depth[-1], violation, path)

    def schedule(n, last=None):
        path = []
        while origins[n] is not None:
            path.append(states[n])
            n = origins[n]
        state, labels = origin, []
        for target in path[::-1]:
            label, state = next((l, s) for _, l, s in steps(state) if not isinstance(s, str) and canon(s) == target)
            labels.append(label)
        return labels + ([next(l for _, l, s in steps(state) if isinstance(s, str))] if last else [])

    n = 0
    while n < len(states):
        for own, label, after in steps(states[n]):
            if isinstance(after, str):
                return result(False, after, schedule(n, after))
            after = canon(after)
            to = number.get(after)
            if to is None:
                to = number[after] = len(states)
                states.append(after)
                origins.append(n)
                own_before.append([])
                want.append(wanting(after))
                depth.append(depth[n] + 1)
                wrong = broken(after)
                if wrong:
                    return result(False, wrong, schedule(to))
            if own:
                own_before[to].append(n)
        n += 1
        if len(states) > limit:
            return result(False)
    # Backwards from the states in which nothing is wanted.
    left = list(want)  # what no own steps are known to lead to
    todo = list(range(len(states)))
    while todo:
        to = todo.pop()
        for before in own_before[to]:
            if left[before] & left[to] != left[before]:
                left[before] &= left[to]
                todo.append(before)
    stuck = next((n for n in range(len(states)) if left[n]), None)
    if stuck is not None:
        return result(True, "message %s is stuck" % names(left[stuck]), schedule(stuck))
    return result(True)


def report(cases, planted=()):
    """Print the result of each case. Exit with status 1 if a case is violated or a planted error is not found.

    A case is (title, function that returns a Result).
    """
    bad = []
    for title, run in cases:
        found = run()
        print("%s: %s" % (title, found), flush=True)
        if found.violation:
            bad.append(title)
    for title, run in planted:
        found = run()
        print("planted %s: %s" % (title, found), flush=True)
        if not found.violation:
            bad.append("planted " + title)
    print("FAILED: " + ", ".join(bad) if bad else "all as expected", flush=True)
    sys.exit(1 if bad else 0)


def subsets(mask):
    """The nonempty subsets of a bit mask."""
    part = mask
    while part:
        yield part
        part = (part - 1) & mask


def names(mask):
    """A bit mask as text: names(0b101) is {0,2}."""
    return "{%s}" % ",".join(str(n) for n in range(mask.bit_length()) if mask >> n & 1)
