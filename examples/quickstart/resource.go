package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// A resource is protected by the lock: a number that workers read and then write back
// greater by one. It checks fencing tokens as any resource should: it remembers the
// greatest token so far and refuses smaller tokens. A read counts as having seen a
// token, too; otherwise an old holder could still write between the read and the
// write of a newer one, and an update would be lost.
type resource struct {
	mu     sync.Mutex
	newest int64
	change chan struct{} // closed and replaced when newest grows
	past   history
}

// A history counts the accesses to a resource.
type history struct {
	value    int // the number
	writes   int // that were accepted
	late     int // that were accepted although their writer knew it had lost the lock
	refusals []refusal
}

// A refusal is an access with a token that was too old.
type refusal struct {
	worker string
	token  int64
	at     time.Time
	late   bool // it was made on purpose by a writer that knew it had lost the lock
}

func newResource() *resource { return &resource{change: make(chan struct{})} }

// check is called with the mutex held.
func (r *resource) check(who string, token int64, late bool) error {
	if token < r.newest {
		r.past.refusals = append(r.past.refusals, refusal{worker: who, token: token, at: time.Now(), late: late})
		return fmt.Errorf("token %d is older than %d", token, r.newest)
	}
	if token > r.newest {
		r.newest = token
		close(r.change)
		r.change = make(chan struct{})
	}
	return nil
}

func (r *resource) read(who string, token int64) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.check(who, token, false); err != nil {
		return 0, err
	}
	return r.past.value, nil
}

// write stores value. late says that the writer knows that the lock is no longer its
// own and tries nevertheless; it changes the record of the attempt, not the check.
func (r *resource) write(who string, token int64, value int, late bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.check(who, token, late); err != nil {
		return err
	}
	r.past.value = value
	r.past.writes++
	if late {
		r.past.late++
	}
	return nil
}

// overtaken returns true when a greater token than the given one has been seen,
// and false if ctx ends before.
func (r *resource) overtaken(ctx context.Context, token int64) bool {
	for {
		r.mu.Lock()
		newest, change := r.newest, r.change
		r.mu.Unlock()
		if newest > token {
			return true
		}
		select {
		case <-change:
		case <-ctx.Done():
			return false
		}
	}
}
