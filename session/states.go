package session

import (
	"context"
	"time"
)

// States returns a channel that delivers the present state and then each change. A slow
// reader gets the newest state, but Lost and Closed are never merged away. The channel
// has a buffer of two. It is closed when ctx ends, and after Closed when the Manager
// closes.
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

// State returns the present state.
func (m *Manager) State() State {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state
}

// setState handles a state of session s. It ignores a session that is not the present
// one.
func (m *Manager) setState(s *Session, st State) {
	m.mu.Lock()
	defer m.mu.Unlock()
	// After a loss the connection ends, which would report Suspended. Only the next
	// session leaves the state Lost.
	if m.session == s && m.state != st && (m.state != Lost || st == Connecting) {
		m.publish(st)
	}
}

// publish sets the state; m.mu is held. No state follows Closed.
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
