package session

import (
	"context"
	"time"
)

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
	broadcast(&m.change)
}
