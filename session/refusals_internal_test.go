package session

import (
	"errors"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// The answer of a server that is read-only ends the connection: the server cannot keep a
// session alive. Breaks if Connected does not look at the flag.
func TestAReadOnlyAnswerIsRefused(t *testing.T) {
	w := &connection{s: &Session{m: &shared{}}}
	if err := w.Connected(&wire.ConnectResponse{Timeout: 4 * time.Second, Session: 7, ReadOnly: true}); !errors.Is(err, errReadOnly) {
		t.Errorf("error %v, want %v", err, errReadOnly)
	}
}
