package session

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// A mistake is a cause of failed connections that a person must remove, in the
// configuration of the client or of a server.
type mistake struct {
	hint string // the cause and the action to take
	// lasting reports whether the cause is certain and waiting does not remove it.
	lasting bool
}

// A tlsError is the failure of a TLS handshake.
type tlsError struct{ err error }

func (e *tlsError) Error() string { return "TLS: " + e.err.Error() }
func (e *tlsError) Unwrap() error { return e.err }

// hintOfForeign returns the action to take if a server is not a ZooKeeper server.
func hintOfForeign(err *wire.ForeignError) string {
	switch err.Protocol {
	case "HTTP":
		return httpHint
	case "TLS":
		return tlsHint
	}
	return "another service listens on this port: check the port"
}

// wraps reports whether err wraps an error of type T.
func wraps[T error](err error) bool {
	var found T
	return errors.As(err, &found)
}

// isSilent reports whether err is the end of a connection on which the server sent
// nothing that identifies it.
func isSilent(err error) bool {
	return wraps[*wire.UnansweredError](err) || wraps[*tlsError](err) && hungUp(err)
}

// refusesCredentials reports whether a server has refused the credentials.
func refusesCredentials(err error) bool { return errors.Is(err, ErrAuthFailed) }

// isDial reports whether err is the failure of a dial. A server that closes a connection
// as soon as it is open can make the dial fail.
func isDial(err error) bool {
	var failed *net.OpError
	return errors.As(err, &failed) && failed.Op == "dial"
}

// A timeoutError reports that a server granted a session timeout that is too short.
type timeoutError struct{ granted, asked time.Duration }

func (e *timeoutError) Error() string {
	return fmt.Sprintf("the server granted a session timeout of %v, where %v were asked for and %v is the least", e.granted, e.asked, minTimeout)
}

func (e *timeoutError) hint() string {
	if e.asked < minTimeout {
		return "ask for more with session.WithTimeout"
	}
	return "raise maxSessionTimeout (20 ticks by default) of the server"
}

// errReadOnly ends a connection to a server without a quorum. Such a server cannot commit
// and so cannot keep a session alive.
var errReadOnly = errors.New("the server is read-only: it has lost its quorum")

const hungUpHint = "the server may have no quorum, may be read-only, or may have too many connections from this host (maxClientCnxns)"

// mistakeOf returns the mistake that err shows or suggests, or nil if the network may
// have caused err.
func mistakeOf(err error) *mistake {
	var foreign *wire.ForeignError
	var short *timeoutError
	var handshake *tlsError
	switch {
	case refusesCredentials(err): // first: a SASL mechanism may have failed with any error
		return &mistake{credentialsHint, true}
	case errors.As(err, &foreign):
		return &mistake{hintOfForeign(foreign), true}
	case errors.As(err, &short):
		return &mistake{short.hint(), true}
	case errors.As(err, &handshake):
		return mistakeOfTLS(handshake.err)
	// crypto/tls has no type for an alert that it has received, so the text decides.
	case err != nil && strings.Contains(err.Error(), "remote error: tls: "):
		// With TLS 1.3 a server refuses the client's certificate after the handshake.
		return mistakeOfTLS(err)
	case errors.Is(err, errReadOnly):
		return &mistake{"start the other servers of the ensemble: this server serves only readers until it has a quorum", false}
	case (wraps[*wire.UnansweredError](err) || isDial(err)) && hungUp(err):
		return &mistake{hungUpHint, false}
	}
	return nil
}

func mistakeOfTLS(err error) *mistake {
	var invalid x509.CertificateInvalidError
	switch {
	case wraps[x509.UnknownAuthorityError](err):
		return &mistake{"the client does not trust the authority that signed the certificate: add it to RootCAs of session.WithTLS", true}
	case wraps[x509.HostnameError](err):
		return &mistake{"the certificate names another host: use that name in the connection string, or as ServerName of session.WithTLS", true}
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return &mistake{"renew the certificate of the server, and check the clocks", true}
	case wraps[*tls.CertificateVerificationError](err):
		return &mistake{"the certificate of the server is not acceptable: replace it", true}
	case wraps[tls.RecordHeaderError](err):
		return &mistake{plainHint, true}
	case strings.Contains(err.Error(), "remote error: tls: "):
		return &mistake{"the server refuses the TLS connection: check the client's certificate (Certificates of session.WithTLS) and the TLS versions", true}
	case hungUp(err):
		return &mistake{"the port may not speak TLS", false}
	}
	return nil
}

const (
	plainHint       = "the port does not speak TLS: use the secureClientPort of the server, or connect without session.WithTLS"
	tlsHint         = "the port expects TLS: use session.WithTLS, or the clientPort of the server"
	credentialsHint = "correct the credentials, or the configuration of the server"
	httpHint        = "an HTTP server or proxy listens on this port: check the port and the dialer"
)

func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
