package wire

import (
	"errors"
	"testing"
)

// An answer that is too short to have a result ends the connection: it is neither the loss of the session nor the
// success of a request. To see this test fail, remove a check of d.Bad from shakeHands or handle.
func TestShortAnswersAreMalformed(t *testing.T) {
	w, h := testConn(t, framed([]byte("12345678")))
	if w.Run(); !errors.Is(h.ended, ErrMalformed) || h.connected != nil {
		t.Errorf("the handshake ended with error %v, and the answer is %+v", h.ended, h.connected)
	}
	w, h = testConn(t, concat(handshake(4000, 7, false), framed([]byte("12345678"))))
	c := w.Send(&Request{Op: OpCloseSession})
	if w.Run(); !errors.Is(h.ended, ErrMalformed) || c.Err == nil {
		t.Errorf("closed with error %v, and the connection ended with error %v", c.Err, h.ended)
	}
}
