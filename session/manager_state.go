package session

import (
	"context"
	"slices"
	"sync"
	"time"
)

// A managerState is the present session of a Manager, its state, and the channels of
// States.
type managerState struct {
	changed func(StateChange) // of the observer; nil if there is none

	mu sync.Mutex
	snapshot
	former    []int64                    // the ids of the newest lost sessions
	listeners map[chan State]func() bool // each with the function that stops its wait for its ctx
}

type snapshot struct {
	session    *Session // nil before the first
	state      State
	since      time.Time // when there was last a connection
	stateSince time.Time
	lost       uint64        // number of lost sessions
	change     chan struct{} // closed and replaced when the state changes
}

func newManagerState(changed func(StateChange)) managerState {
	now := time.Now()
	return managerState{
		changed: changed, listeners: make(map[chan State]func() bool),
		snapshot: snapshot{since: now, stateSince: now, change: make(chan struct{})},
	}
}

func (m *managerState) present() snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.snapshot
}

// States returns a channel that delivers the present state and then each change. A slow
// reader gets the newest state, and before it Lost if a session was lost since the last
// receipt; several losses are one. If the reader receives at the very moment of a change,
// Lost may follow the state that came after the loss. Closed is never left out, and the newest
// state is always the last. The channel has a buffer of two. It is closed when ctx ends, and after Closed when the Manager closes.
func (m *managerState) States(ctx context.Context) <-chan State {
	ch := make(chan State, maxUnseen)
	m.mu.Lock()
	defer m.mu.Unlock()
	// The buffer is empty, so this does not block under mu.
	ch <- m.state
	if m.state == Closed {
		close(ch)
		return ch
	}
	// publish may close the channel first, and a channel must not be closed twice.
	m.listeners[ch] = context.AfterFunc(ctx, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if _, ok := m.listeners[ch]; ok {
			delete(m.listeners, ch)
			close(ch)
		}
	})
	return ch
}

// maxFormer is the number of lost sessions that are remembered. No more sessions than
// this can have znodes left.
const maxFormer = 64

// had reports whether the Manager has lost a session with the id.
func (m *managerState) had(id int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Contains(m.former, id)
}

// State returns the present state.
func (m *managerState) State() State { return m.present().state }

// setState handles a state of session s.
func (m *managerState) setState(s *Session, st State) {
	m.mu.Lock()
	defer m.mu.Unlock()
	// A former session may still report, while bury closes it. After a loss the connection
	// ends, which would report Suspended. Only the next session leaves the state Lost.
	if m.session == s && m.state != st && (m.state != Lost || st == Connecting) {
		m.publish(st)
	}
}

// setClosed sets the state Closed.
func (m *managerState) setClosed() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.publish(Closed)
}

// publish sets the state; m.mu is held.
func (m *managerState) publish(st State) {
	// No state follows Closed, although the last session still ends.
	if m.state == Closed {
		return
	}
	if m.state == Connected {
		m.since = time.Now()
	}
	change := StateChange{From: m.state, To: st}
	if s := m.session; s != nil && s.known.Load() {
		change.Session = s.id
	}
	if m.changed != nil {
		// Under mu, so that the observer gets the changes in their order.
		m.changed(change)
	}
	m.state, m.stateSince = st, time.Now()
	if st == Lost {
		m.lost++
		if change.Session != 0 {
			// Before the next session begins, in which an Ephemeral may find its znode of this one.
			m.former = append(m.former, change.Session)
			m.former = m.former[max(0, len(m.former)-maxFormer):]
		}
	}
	for ch, stop := range m.listeners {
		push(ch, st, Lost)
		if st == Closed {
			// Otherwise a ctx that lives on would keep the listener.
			stop()
			delete(m.listeners, ch)
			close(ch)
		}
	}
	broadcast(&m.change)
}
