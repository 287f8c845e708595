package session

import (
	"errors"
	"testing"
)

// The answer of a server that is read-only ends the connection: the server cannot keep a
// session alive. Breaks if shakeHands does not look at the flag.
func TestAReadOnlyAnswerIsRefused(t *testing.T) {
	frame := appendInt(appendInt(make([]byte, 4), 0), 4000) // protocol, timeout
	frame = append(frame, 0, 0, 0, 0, 0, 0, 0, 7)           // session
	frame = append(appendBuffer(frame, make([]byte, 16)), 1)
	s := &Session{m: &Manager{}}
	if _, err := s.shakeHands(&wire{s: s}, frame); !errors.Is(err, errReadOnly) {
		t.Errorf("error %v, want %v", err, errReadOnly)
	}
}

// A server that does not prove that it knows the password is refused. Breaks if Next does
// not compare rspauth.
func TestDigestMD5WantsTheServersProof(t *testing.T) {
	for name, proof := range map[string]func(e *digestExchange) string{
		"right": func(e *digestExchange) string { return "rspauth=" + e.expected },
		"wrong": func(*digestExchange) string { return "rspauth=00000000000000000000000000000000" },
		"none":  func(*digestExchange) string { return "" },
	} {
		e := &digestExchange{m: &digestMD5{"bob", "secret"}, cnonce: "c"}
		if _, done, err := e.Next([]byte(`realm="r",nonce="n",charset=utf-8,algorithm=md5-sess,qop="auth"`)); err != nil || done {
			t.Fatal(done, err)
		}
		if _, done, err := e.Next([]byte(proof(e))); done != (name == "right") || (err == nil) != (name == "right") {
			t.Errorf("%s: done %v, error %v", name, done, err)
		}
	}
}
