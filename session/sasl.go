package session

import (
	"context"
	"errors"
	"fmt"
	"net"

	"go.uber.org/zap"
)

// A SASLMechanism authenticates this client on each connection to a server; see
// WithSASL. DigestMD5 is built in, and the module examples/kerberos has Kerberos, by
// gokrb5. Several goroutines may call the methods at the same
// time. If the mechanism has a method String, the result names the client in errors
// about permissions.
type SASLMechanism interface {
	// Start begins the exchange for a new connection to server, a "host:port" of the
	// connection string. It may ask other services, bounded by ctx. initial is the
	// first token for the server; mechanisms in which the server begins return none.
	Start(ctx context.Context, server string) (exchange SASLExchange, initial []byte, err error)
}

// A SASLExchange is the authentication of one connection. It is used by one
// goroutine.
type SASLExchange interface {
	// Next takes a token of the server and returns the next one for the server, or
	// nil if there is none. done reports that the server needs nothing more from the
	// client and has proven what the mechanism wants proven. Next must not block.
	Next(challenge []byte) (response []byte, done bool, err error)
}

// WithSASL authenticates the client by a SASL mechanism, on every connection and
// ahead of any request. Znodes are then created for their creator alone, unless
// WithACL says otherwise. Connect fails with ErrAuthFailed if the server refuses the
// credentials, offers no SASL, or does not prove its own identity where the mechanism
// asks for that.
//
//	session.WithSASL(session.DigestMD5("bob", "secret"))
func WithSASL(mechanism SASLMechanism) Option {
	return func(c *config) error {
		if mechanism == nil {
			return invalid("WithSASL", "the mechanism is nil, want one as session.DigestMD5(user, password)")
		}
		c.sasl = mechanism
		return nil
	}
}

var errNoSASL = errors.New("the server offers no SASL: it has no JAAS configuration for clients")

// A saslState is the authentication of one connection.
type saslState struct {
	exchange SASLExchange
	token    []byte // the next one for the server
	done     bool   // no other token follows
}

func (m *Manager) startSASL(ctx context.Context, server string) (*saslState, error) {
	if m.cfg.sasl == nil {
		return nil, nil
	}
	exchange, token, err := m.cfg.sasl.Start(ctx, server)
	if err == nil && exchange == nil {
		err = errors.New("the mechanism returned neither an exchange nor an error")
	}
	if err != nil {
		return nil, fmt.Errorf("SASL: %w", err)
	}
	if token == nil {
		token = []byte{}
	}
	return &saslState{exchange: exchange, token: token}, nil
}

// answer takes the answer of the server to the newest token. more reports that there
// is another token to send.
func (a *saslState) answer(code int32, body []byte) (more bool, err error) {
	d := decoder{b: body}
	challenge := d.buffer()
	switch {
	case code != 0:
		return false, fmt.Errorf("%w: SASL: %w", ErrAuthFailed, errorOfCode(code))
	case a.done:
		return false, nil
	case d.bad || challenge == nil:
		return false, fmt.Errorf("%w: %w", ErrAuthFailed, errNoSASL)
	}
	a.token, a.done, err = a.exchange.Next(challenge)
	switch {
	case err != nil:
		return false, fmt.Errorf("%w: SASL: %w", ErrAuthFailed, err)
	case a.token == nil && !a.done:
		return false, fmt.Errorf("%w: SASL: the mechanism has no answer for the server and is not done", ErrAuthFailed)
	}
	return a.token != nil, nil
}

// introduce authenticates a new connection, and then puts it to use. It runs in the
// reader's goroutine, as do the answers, so nothing else is sent before.
func (s *Session) introduce(w *wire) {
	if w.sasl == nil {
		s.begin(w)
		return
	}
	w.limit(s.link.bound(), "the SASL exchange")
	w.send(&call{op: opSASL, done: make(chan struct{}), answered: func(c *call) {
		more, err := w.sasl.answer(c.code, c.body)
		switch {
		case err != nil:
			s.m.cfg.log.Error("credentials refused", zap.String("server", w.server), zap.Error(err))
			s.m.giveUp(err)
			w.end(err)
		case more:
			s.introduce(w)
		default:
			w.sasl = nil
			s.introduce(w)
		}
	}}, func(b []byte) []byte { return appendBuffer(b, w.sasl.token) })
}

// authenticateOn is introduce for a connection that has no wire.
func (a *saslState) authenticateOn(conn net.Conn) error {
	for more := true; more; {
		request := appendBuffer(appendInt(appendInt(make([]byte, 4), 1), opSASL), a.token)
		answer, err := exchange(conn, request)
		if err != nil {
			return err
		}
		d := decoder{b: answer[4:]}
		d.int()
		d.long()
		code := d.int()
		if more, err = a.answer(code, d.b); err != nil {
			return err
		}
	}
	return nil
}
