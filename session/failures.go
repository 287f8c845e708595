package session

import (
	"fmt"
	"strings"

	"go.uber.org/zap"
)

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
