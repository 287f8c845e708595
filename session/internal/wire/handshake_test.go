package wire

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

// An answer that is too short to have a result fails a Lockstep: it is neither the loss of the session nor a success.
// To see this test fail, remove a check of d.Bad from Connect or Do.
func TestLockstepRefusesShortAnswers(t *testing.T) {
	answering := func(body string) Lockstep {
		return Lockstep{struct {
			io.Reader
			io.Writer
		}{bytes.NewReader(append(Encoder(nil).Int(int32(len(body))), body...)), io.Discard}}
	}
	if id, err := answering("12345678").Connect(0, 7, nil); !errors.Is(err, ErrMalformed) {
		t.Errorf("session %d, error %v, want %v", id, err, ErrMalformed)
	}
	if err := answering("12345678").CloseSession(); !errors.Is(err, ErrMalformed) {
		t.Errorf("closed with error %v, want %v", err, ErrMalformed)
	}
}
