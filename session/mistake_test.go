package session

import (
	"net"
	"syscall"
	"testing"
)

// A server that closes a connection as soon as it is open makes the dial fail at times: the hint is the hint for a
// connection that was closed without an answer.
func TestHintOfADialThatWasHungUp(t *testing.T) {
	for err, hinted := range map[syscall.Errno]bool{syscall.EPIPE: true, syscall.ECONNRESET: true, syscall.ECONNREFUSED: false} {
		m := mistakeOf(&net.OpError{Op: "dial", Net: "tcp", Err: err})
		if got := m != nil && m.hint == hungUpHint; got != hinted {
			t.Errorf("dial: %v: the hint is there: %v, want %v", err, got, hinted)
		}
	}
}
