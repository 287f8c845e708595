package session

import (
	"slices"
	"time"
)

// A readQueue has reads of an Inbox that wait to be sent, the next one first. It limits the reads
// that a server refuses: a Tree may have a hundred thousand reads, and must not send all of them
// again and again to a server that has no time for them.
type readQueue struct {
	reads    []queuedRead
	since    time.Time // when the present second began
	refusals int       // of reads of this queue in that second
}

// A queuedRead is a read that is sent at a certain time or later.
type queuedRead struct {
	read *InboxRead
	due  time.Time
}

// add adds a read that is due at a time.
func (q *readQueue) add(r *InboxRead, due time.Time) {
	i, _ := slices.BinarySearchFunc(q.reads, due, func(other queuedRead, due time.Time) int {
		if other.due.After(due) {
			return 1
		}
		return -1 // r goes behind the reads of the same time
	})
	q.reads = slices.Insert(q.reads, i, queuedRead{r, due})
}

// next removes and returns the next read that may be sent, nil if there is none. It drops the reads
// that were stopped meanwhile.
func (q *readQueue) next(now time.Time) *InboxRead {
	for len(q.reads) > 0 && q.rest(now) == 0 {
		first := q.reads[0]
		stopped := first.read.state != readQueued
		if !stopped && first.due.After(now) {
			return nil
		}
		// The array must not keep the read until the queue is empty.
		q.reads[0] = queuedRead{}
		q.reads = q.reads[1:]
		if !stopped {
			return first.read
		}
	}
	if len(q.reads) == 0 {
		q.reads = nil // a long queue must not keep its memory
	}
	return nil
}

// dropStopped counts a read that was stopped in a queue, and removes all stopped reads when they are about half of the
// queues: while there is no connection, next does not remove them. So a removal costs a constant time for each
// stopped read. in.mu is held.
func (in *Inbox) dropStopped() {
	in.stopped++
	if in.stopped < inboxWindow || 2*in.stopped < len(in.firsts.reads)+len(in.repeats.reads) {
		return
	}
	in.stopped = 0
	for _, q := range []*readQueue{&in.firsts, &in.repeats} {
		q.reads = slices.DeleteFunc(q.reads, func(r queuedRead) bool { return r.read.state != readQueued })
	}
}

// pause returns the time until the next read may be sent. It is 0 if the read waits for a connection
// or for the window, or if there is none.
func (q *readQueue) pause(now time.Time) time.Duration {
	if len(q.reads) == 0 {
		return 0
	}
	return max(q.reads[0].due.Sub(now), q.rest(now), 0)
}

// refused counts a refusal.
func (q *readQueue) refused(now time.Time) {
	if now.Sub(q.since) >= time.Second {
		q.since, q.refusals = now, 0
	}
	q.refusals++
}

// rest returns the time until a read may be sent in spite of the refusals.
func (q *readQueue) rest(now time.Time) time.Duration {
	if q.refusals < inboxWindow {
		return 0
	}
	return max(0, time.Second-now.Sub(q.since))
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
	in.firsts.reads = in.firsts.reads[:len(in.firsts.reads)-1]
	in.repeats.add(r, time.Now().Add(in.s.m.jitter.backoff(round-1)))
}
