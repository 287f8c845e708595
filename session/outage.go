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
	for {
		now, due := m.present(), timer.C
		switch {
		// A new outage is reported as soon as the first one was, regardless of its intervals.
		case now.state == Connected:
			due, pause, report = nil, firstReport, time.Time{}
		case report.IsZero():
			report = time.Now().Add(pause)
			timer.Reset(pause)
		}
		select {
		case <-m.ctx.Done():
			return
		case <-now.change:
		case <-due:
			// After the first session the configuration has proven right, and a silent server
			// has another problem.
			if !m.everConnected.Load() {
				m.probe()
				m.giveUpIfMistaken()
			}
			// The first turn of the timer is early, for the probe alone.
			if rest := time.Until(report); rest > 0 {
				timer.Reset(rest)
				continue
			}
			lines, _ := m.servers.report()
			m.cfg.log.Warn("no server could be used", zap.Stringer("state", now.state),
				zap.Duration("waited", roundTime(time.Since(now.since))), zap.Strings("servers", lines))
			pause = min(2*pause, maxReport)
			report = time.Now().Add(pause)
			timer.Reset(pause)
		}
	}
}

// outage returns the reason why no server can be used, or why one connection after another ends. It
// returns nil if there is a connection that lasts, or the Manager is closed.
func (m *Manager) outage() error {
	now, hangUp := m.present(), m.hangUps.reason()
	if now.state == Connected || now.state == Closed {
		return hangUp
	}
	err := fmt.Errorf("no server could be used for %v: %w", roundTime(time.Since(now.since)), m.tried())
	if hangUp != nil {
		err = fmt.Errorf("%w; %w", hangUp, err)
	}
	return err
}

// trouble returns the reason why calls get no answers at present, or nil.
func (m *Manager) trouble() error {
	if now := m.present(); now.state == Connected {
		if w := now.session.gate.current(); w != nil {
			// A shorter silence is no reason for a wait.
			if d := w.Unanswered(time.Now()); d >= time.Second {
				return fmt.Errorf("no answer from %s for %v", w.Server, roundTime(d))
			}
		}
	}
	return m.outage()
}

// offline returns the reason why a call has to wait for a connection.
func (m *Manager) offline() error {
	if outage := m.outage(); outage != nil {
		return outage
	}
	if m.State() == Closed {
		return ErrClosed
	}
	// A connection has come into use since the call gave up.
	return errors.New("for a request to be sent")
}
