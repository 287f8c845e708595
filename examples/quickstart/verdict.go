package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A span is the time for which a worker had the lock, by the clock of this
// process: from the return of LockContext to the end of its held context, or to
// the call of Unlock if that came first.
type span struct {
	worker      string
	token       int64
	from, until time.Time
	lost        bool
	struck      time.Time // when a fault hit it, if one did
	revoked     time.Time // when its session was expired by force, if it was
}

// rightful is until when the lock truly was the worker's. An expiry by force
// takes it away at that moment, and nobody can know before it happens; the rest
// is a mistaken belief, in which the resource must refuse it.
func (s span) rightful() time.Time {
	if !s.revoked.IsZero() && s.revoked.Before(s.until) {
		return s.revoked
	}
	return s.until
}

// mistaken tells whether the worker believed at that time in a lock that had
// been taken from it by force.
func (s span) mistaken(at time.Time) bool {
	return !s.revoked.IsZero() && !at.Before(s.revoked) && !at.After(s.until)
}

// A verdict is the result of a check of the spans and the resource's history.
type verdict struct {
	turns   int
	losses  []span
	history history
	late    int      // refusals of writes that were late on purpose
	wrong   []string // broken promises
	missed  []string // faults that the run had no time for
	stopped bool     // by hand
}

func (v verdict) ok() bool { return len(v.wrong) == 0 }

// status is the exit status of the program.
func (v verdict) status() int {
	if v.ok() {
		return 0
	}
	return exitFailed
}

// judge looks for two that held at once, by the clock and by the tokens.
func judge(spans []span, past history) verdict {
	v := verdict{turns: len(spans), history: past}
	spans = slices.Clone(spans)
	slices.SortFunc(spans, func(a, b span) int {
		return cmp.Or(a.from.Compare(b.from), cmp.Compare(a.token, b.token)) // a turn may be shorter than the clock can tell
	})

	for i, s := range spans {
		if s.lost {
			v.losses = append(v.losses, s)
		}
		if i == 0 {
			continue
		}
		// The span that ended last so far need not be the span before.
		last := slices.MaxFunc(spans[:i], func(a, b span) int { return a.rightful().Compare(b.rightful()) })
		if by := last.rightful().Sub(s.from); by > 0 {
			v.accuse("%s (token %d) had the lock for %s more when %s (token %d) got it",
				last.worker, last.token, by, s.worker, s.token)
		}
		if before := spans[i-1]; s.token <= before.token {
			v.accuse("%s got token %d after %s had %d: tokens must grow", s.worker, s.token, before.worker, before.token)
		}
	}

	for _, r := range past.refusals {
		switch {
		case r.late:
			v.late++
		case !slices.ContainsFunc(spans, func(s span) bool { return s.token == r.token && s.mistaken(r.at) }):
			v.accuse("%s was refused with token %d while it rightly believed to have the lock", r.worker, r.token)
		}
	}
	if past.late > 0 {
		v.accuse("the resource took %d writes with an old token", past.late)
	}
	if past.value != past.writes {
		v.accuse("the number is %d after %d writes: some were lost", past.value, past.writes)
	}
	return v
}

func (v *verdict) accuse(format string, args ...any) {
	v.wrong = append(v.wrong, fmt.Sprintf(format, args...))
}

// lines is the verdict in words, without the last one.
func (v verdict) lines() (lines []string) {
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if v.stopped {
		say("Stopped by hand.")
	}
	say("%d turns under the lock, %d writes accepted, the number stands at %d.", v.turns, v.history.writes, v.history.value)
	for _, s := range v.losses {
		switch {
		case s.struck.IsZero():
			say("%s lost the lock (token %d).", s.worker, s.token)
		case !s.revoked.IsZero():
			say("%s lost the lock (token %d) by force, and knew it %s later. Only the tokens protect in that time.",
				s.worker, s.token, short(s.until.Sub(s.revoked)))
		default:
			say("%s lost the lock (token %d), and knew it %s after the fault, before the server gave it to anyone.",
				s.worker, s.token, short(s.until.Sub(s.struck)))
		}
	}
	if v.late > 0 {
		say("Writes that came late, with an old token: %d refused, %d accepted.", v.late, v.history.late)
	}
	if len(v.missed) > 0 {
		say("Not seen, for want of time (see -for): %s.", strings.Join(v.missed, "; "))
	}
	for _, w := range v.wrong {
		say("WRONG: %s.", w)
	}
	return lines
}
