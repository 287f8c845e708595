package session

import (
	"context"
	"fmt"
	"time"
)

// State is what a Manager can say about its session.
type State uint8

const (
	// Connecting: there is no session yet, and one is being opened.
	Connecting State = iota
	// Connected: there is a session, and requests are answered.
	Connected
	// Suspended: the connection broke. The session may live; holders keep what
	// they hold until Deadline.
	Suspended
	// Lost: the session is gone, and its ephemerals with it. Connecting follows.
	Lost
	// Closed: Close was called, or Connect has failed. Nothing follows.
	Closed
)

var stateNames = [...]string{"Connecting", "Connected", "Suspended", "Lost", "Closed"}

func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// States tells the present state, then each change. A slow reader gets the
// newest state and misses those in between, but is always told of a Lost since
// it last looked, and of Closed. The channel is closed when ctx ends, and behind
// Closed when the Manager does.
func (m *Manager) States(ctx context.Context) <-chan State {
	ch := make(chan State, maxUnseen)
	m.mu.Lock()
	defer m.mu.Unlock()
	ch <- m.state
	if m.state == Closed {
		close(ch)
		return ch
	}
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

// State tells the present state.
func (m *Manager) State() State {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state
}

// setState is called by sessions; one that is not the present one any more is
// not listened to.
func (m *Manager) setState(s *Session, st State) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.session == s && m.state != st && (m.state != Lost || st == Connecting) {
		m.publish(st)
	}
}

// publish is setState for callers that hold m.mu. Nothing follows Closed.
func (m *Manager) publish(st State) {
	if m.state == Closed {
		return
	}
	if m.state == Connected {
		m.since = time.Now()
	}
	if changed := m.cfg.observer.StateChanged; changed != nil {
		change := StateChange{From: m.state, To: st}
		if s := m.session; s != nil && s.known.Load() {
			change.Session = s.id
		}
		changed(change)
	}
	m.state, m.stateSince = st, time.Now()
	if st == Lost {
		m.lost++
	}
	for ch, stop := range m.listeners {
		push(ch, st, Lost)
		if st == Closed {
			stop()
			delete(m.listeners, ch)
			close(ch)
		}
	}
	close(m.change)
	m.change = make(chan struct{})
}
