package session

import (
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
)

// watchOutages logs, while there is no connection, the reason why no server can be used.
// One log line serves all calls that wait for a connection. It runs until Close begins.
func (m *Manager) watchOutages() {
	// Start early, so that the probe has ended at the time of the first report.
	timer := time.NewTimer(firstReport - probeTime)
	defer timer.Stop()
	pause, report := firstReport, time.Now().Add(firstReport)
	connected := false
	for {
		m.mu.Lock()
		state, since, change := m.state, m.since, m.change
		m.mu.Unlock()
		if now := state == Connected; now != connected {
			connected = now
			pause, report = firstReport, time.Now().Add(firstReport)
			timer.Reset(pause)
		}
		due := timer.C
		if connected {
			due = nil
		}
		select {
		case <-m.ctx.Done():
			return
		case <-change:
		case <-due:
			if !m.everConnected.Load() {
				m.probe()
				m.giveUpIfMistaken()
			}
			if rest := time.Until(report); rest > 0 {
				timer.Reset(rest)
				continue
			}
			m.cfg.log.Warn("no server could be used", zap.Stringer("state", state),
				zap.Duration("waited", roundTime(time.Since(since))), zap.Strings("servers", m.servers.report()))
			pause = min(2*pause, maxReport)
			report = time.Now().Add(pause)
			timer.Reset(pause)
		}
	}
}

// offline returns the reason why a call has to wait for a connection.
func (m *Manager) offline() error {
	m.mu.Lock()
	state, since := m.state, m.since
	m.mu.Unlock()
	switch state {
	case Connected:
		return errors.New("for a request to be sent")
	case Closed:
		return ErrClosed
	}
	return fmt.Errorf("no server could be used for %v: %w", roundTime(time.Since(since)), m.tried())
}
