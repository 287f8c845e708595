package session

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
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

func isUnanswered(err error) bool {
	var unanswered *wire.UnansweredError
	return errors.As(err, &unanswered)
}

// isSilent reports whether err is the end of a connection on which the server sent
// nothing that identifies it.
func isSilent(err error) bool {
	var handshake *tlsError
	return isUnanswered(err) || errors.As(err, &handshake) && hungUp(err)
}

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
	case (isUnanswered(err) || isDial(err)) && hungUp(err):
		return &mistake{hungUpHint, false}
	}
	return nil
}

func mistakeOfTLS(err error) *mistake {
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var certificate *tls.CertificateVerificationError
	var plain tls.RecordHeaderError
	switch {
	case errors.As(err, &authority):
		return &mistake{"the client does not trust the authority that signed the certificate: add it to RootCAs of session.WithTLS", true}
	case errors.As(err, &name):
		return &mistake{"the certificate names another host: use that name in the connection string, or as ServerName of session.WithTLS", true}
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return &mistake{"renew the certificate of the server, and check the clocks", true}
	case errors.As(err, &certificate):
		return &mistake{"the certificate of the server is not acceptable: replace it", true}
	case errors.As(err, &plain):
		return &mistake{plainHint, true}
	case strings.Contains(err.Error(), "remote error: tls: "):
		return &mistake{"the server refuses the TLS connection: check the client's certificate (Certificates of session.WithTLS) and the TLS versions", true}
	case hungUp(err):
		return &mistake{"the port may not speak TLS", false}
	}
	return nil
}

const (
	plainHint = "the port does not speak TLS: use the secureClientPort of the server, or connect without session.WithTLS"
	tlsHint   = "the port expects TLS: use session.WithTLS, or the clientPort of the server"
	httpHint  = "an HTTP server or proxy listens on this port: check the port and the dialer"
)

func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

const probeTime = 500 * time.Millisecond

// probe identifies servers that accept connections but do not answer the handshake.
func (m *shared) probe() {
	var wg sync.WaitGroup
	for _, server := range m.servers.unexplained() {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(m.ctx, probeTime)
			defer cancel()
			if found := m.cfg.probeServer(ctx, server); found != nil {
				m.servers.explain(server, found)
			}
		})
	}
	wg.Wait()
}

// probeServer returns the mistake that the server's answers show, or nil.
func (c *config) probeServer(ctx context.Context, server string) *mistake {
	var word, page string
	var secure bool
	var wg sync.WaitGroup
	// All questions at the same time, because a server of another kind often does not
	// answer.
	wg.Go(func() { word = c.ask(ctx, server, "srvr") })
	wg.Go(func() { page = c.ask(ctx, server, "HEAD / HTTP/1.0\r\n\r\n") })
	// A connection with TLS has shown by its own error whether the server speaks TLS.
	if c.tls == nil {
		wg.Go(func() { secure = c.speaksTLS(ctx, server) })
	}
	wg.Wait()
	switch {
	case secure:
		return &mistake{tlsHint, true}
	case strings.HasPrefix(page, "HTTP/"):
		return &mistake{httpHint, true}
	case word == "":
		return nil
	case c.tls != nil:
		return &mistake{plainHint, true}
	case strings.Contains(word, "not currently serving requests"):
		return &mistake{"the server has no quorum: start the other servers of the ensemble, and check the network between them", false}
	case strings.Contains(word, "read-only"):
		return mistakeOf(errReadOnly)
	}
	return nil
}

// ask sends a question without TLS and returns the answer, or "" if the server
// does not answer or the answer is not text.
func (c *config) ask(ctx context.Context, server, question string) string {
	// A connection for each question: a server accepts a four-letter word only as the first
	// bytes of a connection.
	conn, err := c.dial(ctx, "tcp", server)
	if err != nil || conn == nil {
		return ""
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := io.WriteString(conn, question); err != nil {
		return ""
	}
	// The beginning shows the protocol, and another service may send without end.
	answer, _ := io.ReadAll(bufio.NewReader(io.LimitReader(conn, 1024)))
	for _, b := range answer {
		if b >= 0x80 || b < ' ' && b != '\n' && b != '\r' && b != '\t' {
			return "" // the answer is not text
		}
	}
	return string(answer)
}

// speaksTLS reports whether the server answers a TLS handshake.
func (c *config) speaksTLS(ctx context.Context, server string) bool {
	conn, err := c.dial(ctx, "tcp", server)
	if err != nil || conn == nil {
		return false
	}
	defer conn.Close()
	// A server that wants a client certificate or another version answers, too.
	seen := &firstByte{Conn: conn}
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	// The connection carries no request, so the certificate does not matter.
	err = tls.Client(seen, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(ctx)
	return err == nil || seen.read && (seen.first == 0x15 || seen.first == 0x16)
}

// firstByte records the first byte that arrives on a connection. If the peer speaks TLS,
// this byte is the type of a TLS record.
type firstByte struct {
	net.Conn
	read  bool
	first byte
}

func (c *firstByte) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && !c.read {
		c.read, c.first = true, p[0]
	}
	return n, err
}
