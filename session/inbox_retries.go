package session

import (
	"container/heap"
	"time"
)

// A retry is a read that is sent again at a certain time.
type retry struct {
	read *InboxRead
	due  time.Time
}

// retries are the reads that wait for their next attempt, the next one first.
type retries []retry

func (q retries) Len() int           { return len(q) }
func (q retries) Less(i, j int) bool { return q[i].due.Before(q[j].due) }
func (q retries) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *retries) Push(x any)        { *q = append(*q, x.(retry)) }

func (q *retries) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	(*q)[last] = retry{} // the array must not keep the read
	*q = (*q)[:last]
	return x
}

// add adds a read that is due at a time.
func (q *retries) add(r *InboxRead, due time.Time) { heap.Push(q, retry{r, due}) }

// next removes and returns the next read that is due, nil if there is none. It drops the reads
// that were stopped meanwhile.
func (q *retries) next(now time.Time) *InboxRead {
	for len(*q) > 0 {
		first := (*q)[0]
		stopped := first.read.state != readQueued
		if !stopped && first.due.After(now) {
			return nil
		}
		heap.Pop(q)
		if !stopped {
			return first.read
		}
	}
	return nil
}

// Delay delays a read that the owner has just begun, by the pause that Session.Pause makes in the
// round. It serves an owner that repeats a read because the answers contradict each other.
func (r *InboxRead) Delay(round int) {
	in := r.in
	in.mu.Lock()
	defer in.mu.Unlock()
	if round < 2 || r.state != readQueued {
		return
	}
	// Only the owner sends reads, so the read is still the last one.
	in.queue = in.queue[:len(in.queue)-1]
	in.retries.add(r, time.Now().Add(in.s.m.jitter.backoff(round-1)))
}

// A refusalPace limits the requests that a server refuses. A Tree may have a hundred thousand reads,
// and must not send all of them again and again to a server that has no time for them.
type refusalPace struct {
	since time.Time // when the present second began
	count int       // the refusals in it
}

// note notes a refusal.
func (p *refusalPace) note(now time.Time) {
	if now.Sub(p.since) >= time.Second {
		p.since, p.count = now, 0
	}
	p.count++
}

// pause returns the time until the next request may be sent, 0 if it may be sent now.
func (p *refusalPace) pause(now time.Time) time.Duration {
	if p.count < inboxWindow {
		return 0
	}
	return max(0, time.Second-now.Sub(p.since))
}
