package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
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
	spans []span
	past  history
	late  int      // refusals of writes that were late on purpose
	wrong []string // broken promises
}

func (v verdict) ok() bool { return len(v.wrong) == 0 }

// judge looks for two that held at once, by the clock and by the tokens.
func judge(spans []span, past history) verdict {
	v := verdict{spans: spans, past: past}
	slices.SortFunc(spans, func(a, b span) int {
		return cmp.Or(a.from.Compare(b.from), cmp.Compare(a.token, b.token)) // a turn may be shorter than the clock can tell
	})

	for i, s := range spans {
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

func (v verdict) print(out io.Writer, stopped bool) {
	say := func(format string, args ...any) { fmt.Fprintf(out, format+"\n", args...) }
	say("")
	if stopped {
		say("Stopped by hand.")
	}
	say("%d turns under the lock, %d writes accepted, the number stands at %d.", len(v.spans), v.past.writes, v.past.value)
	for _, s := range v.spans {
		if !s.lost {
			continue
		}
		knew, how := short(s.until.Sub(s.struck)), "before the server gave it to anyone"
		if !s.revoked.IsZero() {
			how = "by force: only the tokens protect in that time"
		}
		say("%s lost the lock (token %d), and knew it %s after the fault, %s.", s.worker, s.token, knew, how)
	}
	if v.late > 0 {
		say("Writes that came late, with an old token: %d refused, %d accepted.", v.late, v.past.late)
	}
	for _, w := range v.wrong {
		say("FAILED: %s.", w)
	}
	if v.ok() {
		say("OK: never did two hold the lock at once, and nothing written was lost.")
	}
}
