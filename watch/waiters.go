package watch

import (
	"container/list"
	"sync"

	"github.com/go-zksync/toolkit/session"
)

// A waiter is a call of WaitSynced. It waits for the sides that are asked when its
// sync is answered.
type waiter struct {
	done chan error // gets nil, or the refusal of the sync; has a buffer of one

	// Of the mirror's goroutine alone:
	sync  *session.InboxRead
	place *list.Element // in mirror.synced; nil until the sync is answered
	epoch uint64        // the epoch that the sync has ended
}

// waiters are the calls that wait for a mirror. They reach the mirror's goroutine by the
// Inbox of the session that the mirror follows.
type waiters struct {
	mu    sync.Mutex
	inbox *session.Inbox // nil between sessions
	all   map[*waiter]struct{}
}

// setInbox sets where waiters post to. It returns the waiters that have posted
// before, or had nowhere to post to.
func (ws *waiters) setInbox(in *session.Inbox) (earlier []*waiter) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	// Under the lock of add: a waiter that is not returned here posts to in.
	ws.inbox = in
	for w := range ws.all {
		earlier = append(earlier, w)
	}
	return earlier
}

// add adds a waiter.
func (ws *waiters) add() *waiter {
	w := &waiter{done: make(chan error, 1)}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.all[w] = struct{}{}
	if ws.inbox != nil {
		ws.inbox.Post(w)
	}
	return w
}

// remove removes a waiter whose caller has gone, and returns why the mirror's reads are sent again,
// nil if servers refuse none.
func (ws *waiters) remove(w *waiter) (refusal error) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	delete(ws.all, w)
	if ws.inbox == nil {
		return nil
	}
	ws.inbox.Post(w) // the mirror stops the sync: a server may refuse it again and again
	return ws.inbox.Refusal()
}

// waits reports whether the caller of a waiter still waits.
func (ws *waiters) waits(w *waiter) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	_, waiting := ws.all[w]
	return waiting
}

// wake ends a wait, unless its caller has gone. err is the refusal of its sync, or nil.
func (ws *waiters) wake(w *waiter, err error) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if _, waiting := ws.all[w]; waiting {
		delete(ws.all, w)
		w.done <- err
	}
}
