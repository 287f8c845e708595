//go:build unix

package chaos

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// capacity is the number of units of each primitive that may be held at the same time. A writer
// takes all units of the rwlock, a reader takes one.
var capacity = map[string]int{"lock": 1, "rwlock": 1000, "semaphore": permits, "election": 1}

// A span is a hold as its holder noted it.
type span struct {
	client     string
	what       string
	start, end int64
	units      int
	token      int64
}

func (s span) String() string {
	return fmt.Sprintf("%s had %d of %s from %s to %s with token %d", s.client, s.units, s.what, clock(s.start), clock(s.end), s.token)
}

func clock(t int64) string { return time.Unix(0, t).UTC().Format("04:05.000000") }

// spans joins the notes of each hold into a span. A hold without a note of its end lasted at least
// until its last note.
func spans(diaries []diary) map[string][]span {
	all := make(map[string][]span)
	for _, d := range diaries {
		at := make(map[int]*span)
		var order []int
		for _, n := range d.notes {
			switch n.Kind {
			case held:
				at[n.Hold] = &span{client: d.client, what: n.What, start: n.At, end: n.At, units: n.Units, token: n.Token}
				order = append(order, n.Hold)
			case still, ended:
				at[n.Hold].end = n.At
			}
		}
		for _, hold := range order {
			all[at[hold].what] = append(all[at[hold].what], *at[hold])
		}
	}
	for _, list := range all {
		slices.SortFunc(list, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	}
	return all
}

// overlaps finds times at which more units were held than exist.
func overlaps(list []span) (wrong []string) {
	var current []span
	for _, s := range list {
		current = slices.DeleteFunc(current, func(c span) bool { return c.end < s.start })
		current = append(current, s)
		total := 0
		for _, c := range current {
			total += c.units
		}
		if limit := capacity[s.what]; total > limit {
			wrong = append(wrong, fmt.Sprintf("%d of %d are held at once: %v", total, limit, current))
		}
	}
	return wrong
}

// backwards finds fencing tokens that are not greater than the token of an earlier hold that
// excludes the hold. Holds that one process passes on in memory share a token. Semaphore tokens are
// no fencing tokens.
func backwards(list []span) (wrong []string) {
	var readers, writers span // the spans with the greatest token so far
	for _, s := range list {
		if s.what == "semaphore" {
			return nil
		}
		writes := s.units == capacity[s.what]
		for _, before := range []span{writers, readers} {
			if before.client == "" || before.units < capacity[s.what] && !writes {
				continue
			}
			if s.token < before.token || s.token == before.token && (s.client != before.client || s.units != before.units) {
				wrong = append(wrong, fmt.Sprintf("the token went back: %v, after %v", s, before))
			}
		}
		switch {
		case writes && s.token > writers.token:
			writers = s
		case !writes && s.token > readers.token:
			readers = s
		}
	}
	return wrong
}

// A delivery is one reception of a message.
type delivery struct {
	diary   *diary
	session int // session of the client
	at      int64
	acked   int64 // 0 without an Ack
	unacked bool
	open    bool // Ack may have taken effect
}

// queueFaults compares the put messages with the received messages.
func queueFaults(diaries []diary) (wrong []string) {
	tried, sent, refused := make(map[string]bool), make(map[string]bool), make(map[string]bool)
	deliveries := make(map[string][]delivery)
	for i := range diaries {
		d := &diaries[i]
		for _, n := range d.notes {
			id, _, _ := strings.Cut(n.Text, " ")
			list := deliveries[id]
			switch n.Kind {
			case trying:
				tried[id] = true
			case put:
				sent[id] = true
			case unput:
				refused[id] = n.Units != open
			case got:
				deliveries[id] = append(list, delivery{diary: d, session: n.Hold, at: n.At})
			case acked, unacked:
				// The note refers to the latest delivery to this session.
				k := len(list) - 1
				for k >= 0 && (list[k].diary != d || list[k].session != n.Hold) {
					k--
				}
				if k < 0 {
					wrong = append(wrong, fmt.Sprintf("%s: %s %s what it did not get", id, d.client, n.Kind))
				} else if n.Kind == acked {
					list[k].acked = n.At
				} else {
					list[k].unacked, list[k].open = true, n.Units == open
				}
			}
		}
	}
	for id, list := range deliveries {
		wrong = append(wrong, deliveryFaults(id, list)...)
		if !tried[id] {
			wrong = append(wrong, id+" was received, and nobody put it")
		}
		if refused[id] {
			wrong = append(wrong, id+" was received, though Put had said that it is not in the queue")
		}
	}
	for id := range sent {
		if !slices.ContainsFunc(deliveries[id], func(d delivery) bool { return d.acked != 0 || d.open || d.diary.killed }) {
			wrong = append(wrong, id+" was put, and is lost")
		}
	}
	return wrong
}

// deliveryFaults lists the errors in the deliveries of one message.
func deliveryFaults(id string, list []delivery) (wrong []string) {
	slices.SortFunc(list, func(a, b delivery) int { return cmp.Compare(a.at, b.at) })
	acks := 0
	for i, d := range list {
		if d.acked != 0 {
			acks++
		}
		if i == 0 {
			continue
		}
		before := list[i-1]
		switch {
		case d.diary.paused && d.acked == 0:
			// The message may have been in transit while the process was paused: the process cannot
			// know of a loss then. Its Ack detects the loss.
		case before.acked != 0 && d.at > before.acked:
			wrong = append(wrong, fmt.Sprintf("%s was delivered to %s at %s, after %s had acknowledged it at %s",
				id, d.diary.client, clock(d.at), before.diary.client, clock(before.acked)))
		case !before.unacked && !before.diary.killed && !before.diary.paused && before.acked == 0:
			wrong = append(wrong, fmt.Sprintf("%s was delivered to %s and to %s, and nothing had happened to the first",
				id, before.diary.client, d.diary.client))
		}
	}
	if acks > 1 {
		wrong = append(wrong, fmt.Sprintf("%s was acknowledged %d times", id, acks))
	}
	return wrong
}

// mishaps lists the errors that no client may see.
func mishaps(diaries []diary) (wrong []string) {
	for _, d := range diaries {
		for _, n := range d.notes {
			if n.Kind == failed {
				wrong = append(wrong, fmt.Sprintf("%s at %s: %s: %s", d.client, clock(n.At), n.What, n.Text))
			}
		}
	}
	return wrong
}

// judge lists all violations of the rules.
func judge(diaries []diary) []string {
	wrong := append(mishaps(diaries), queueFaults(diaries)...)
	for _, list := range spans(diaries) {
		wrong = append(append(wrong, overlaps(list)...), backwards(list)...)
	}
	return wrong
}

// longestGap returns the longest time in which no client made progress.
func longestGap(diaries []diary) (longest time.Duration, from int64) {
	var done []int64
	for _, d := range diaries {
		for _, n := range d.notes {
			if n.Kind == held || n.Kind == put || n.Kind == acked {
				done = append(done, n.At)
			}
		}
	}
	slices.Sort(done)
	before := int64(math.MaxInt64)
	for _, t := range done {
		if d := time.Duration(t - before); d > longest {
			longest, from = d, before
		}
		before = t
	}
	return longest, from
}
