package session

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// A SASLMechanism authenticates this client on each connection to a server; see WithSASL.
// This package has DigestMD5. The module examples/kerberos has Kerberos, with gokrb5.
// Several goroutines may call the methods at the same time. If the mechanism has a method
// String, errors about permissions name the client by its result.
type SASLMechanism interface {
	// Start begins the exchange for a new connection to server, a "host:port" of the
	// connection string. Start may send requests to other services, bounded by ctx.
	// initial is the first token for the server, or nil if the server begins.
	Start(ctx context.Context, server string) (exchange SASLExchange, initial []byte, err error)
}

// A SASLExchange is the authentication of one connection. One goroutine uses it.
type SASLExchange interface {
	// Next handles a token of the server and returns the next token for the server, or
	// nil. done reports that the server needs no further token and has proven its
	// identity as far as the mechanism requires. Next must not block.
	Next(challenge []byte) (response []byte, done bool, err error)
}

// DigestMD5 returns the SASL mechanism DIGEST-MD5 (RFC 2831). ZooKeeper servers offer
// this mechanism with a DigestLoginModule in their JAAS configuration. The password is
// not sent, and the server proves that it knows the password, too. The mechanism encrypts
// nothing and is regarded as weak: use TLS with it.
func DigestMD5(user, password string) SASLMechanism { return &digestMD5{user, password} }

type digestMD5 struct{ user, password string }

func (m *digestMD5) String() string { return "sasl:" + m.user }

func (m *digestMD5) Start(context.Context, string) (SASLExchange, []byte, error) {
	if m.user == "" {
		return nil, nil, errors.New("DIGEST-MD5: the user name is empty")
	}
	return &wire.DigestMD5{User: m.user, Password: m.password, Cnonce: rand.Text()}, nil, nil
}

var errNoSASL = errors.New("the server offers no SASL: it has no JAAS configuration for clients")

// A saslState is the authentication of one connection.
type saslState struct {
	exchange SASLExchange
	token    []byte // the next token for the server
	done     bool   // no further token follows
}

// startSASL begins the authentication of a connection. It returns nil without a
// mechanism.
func startSASL(ctx context.Context, mechanism SASLMechanism, server string) (*saslState, error) {
	if mechanism == nil {
		return nil, nil
	}
	exchange, token, err := mechanism.Start(ctx, server)
	if err == nil && exchange == nil {
		err = errors.New("the mechanism returned neither an exchange nor an error")
	}
	if err != nil {
		return nil, fmt.Errorf("SASL: %w", err)
	}
	// The server answers an empty token by its first challenge. nil would be sent as the
	// length -1.
	if token == nil {
		token = []byte{}
	}
	return &saslState{exchange: exchange, token: token}, nil
}

// record builds the record of the next request.
func (a *saslState) record() []byte { return wire.Encoder(nil).Buffer(a.token) }

// answer handles the server's answer to the newest token. more reports that there is
// another token to send.
func (a *saslState) answer(code int32, body []byte) (more bool, err error) {
	d := wire.Decoder{B: body}
	challenge := d.Buffer()
	switch {
	case code != 0:
		return false, fmt.Errorf("SASL: %w", credentialError(code))
	case a.done:
		return false, nil // the answer to the last token carries nothing
	// A server without a JAAS configuration answers without an error and without a token.
	case d.Bad || challenge == nil:
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
