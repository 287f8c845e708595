package session

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"
)

// watchOutages logs why no server can be used while there is no connection: once
// for all calls that wait for one. It runs until Close begins.
func (m *Manager) watchOutages() {
	// The probe is done in time for the first report.
	timer := time.NewTimer(firstReport - probeTime)
	defer timer.Stop()
	pause, report := firstReport, time.Now().Add(firstReport)
	connected := false
	for {
		m.mu.Lock()
		state, change := m.state, m.change
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
			m.cfg.log.Warn("no server can be used", zap.Stringer("state", state),
				zap.Duration("waited", roundTime(time.Since(m.offlineSince()))), zap.Strings("servers", m.servers.report()))
			pause = min(2*pause, maxReport)
			report = time.Now().Add(pause)
			timer.Reset(pause)
		}
	}
}

// offlineSince returns when the last connection ended, or the Manager was made.
func (m *Manager) offlineSince() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.since
}

// serverFailed notes that a connection to a server failed or ended.
func (m *shared) serverFailed(server string, err error) {
	if found := m.servers.failed(server, err); found != nil && found.lasting {
		m.reportMistake(server, found, err)
		m.giveUpIfMistaken()
	}
}

func (m *shared) reportMistake(server string, found *mistake, err error) {
	m.cfg.log.Warn("server cannot be used", zap.String("server", server), zap.Error(err), zap.String("hint", found.hint))
}

// giveUpIfMistaken ends Connect if no server of the list can be used, for reasons
// that waiting does not remove.
func (m *shared) giveUpIfMistaken() {
	if !m.everConnected.Load() && m.servers.mistaken() {
		m.giveUp(fmt.Errorf("%w: %w", ErrMisconfigured, m.tried()))
	}
}

// giveUp ends Connect with err.
func (m *shared) giveUp(err error) {
	m.hopelessOnce.Do(func() {
		m.hopelessErr = err
		close(m.hopeless)
	})
}

// tried says what came of the attempts to connect to the servers.
func (m *shared) tried() error {
	return &triedError{strings.Join(m.servers.report(), "; "), m.servers.errors()}
}

type triedError struct {
	text string
	errs []error
}

func (e *triedError) Error() string   { return e.text }
func (e *triedError) Unwrap() []error { return e.errs }

func sessionField(id int64) zap.Field { return zap.String("session", sessionID(id)) }

// offline returns why a call has to wait for a connection.
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
