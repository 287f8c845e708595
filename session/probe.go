package session

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
)

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

// serverFailed records that a connection to a server failed or ended.
func (m *shared) serverFailed(server string, err error) {
	found := m.servers.failed(server, err)
	if found == nil || !found.lasting {
		return
	}
	if found.hint == credentialsHint {
		m.mistakes.log(m.cfg.log, zap.ErrorLevel, "credentials refused", zap.String("server", server), zap.Error(err))
	} else {
		m.mistakes.log(m.cfg.log, zap.WarnLevel, "server could not be used", zap.String("server", server), zap.Error(err), zap.String("hint", found.hint))
	}
	m.giveUpIfMistaken()
}

// giveUpIfMistaken ends Connect if no server of the list can be used, for reasons that
// waiting does not remove.
func (m *shared) giveUpIfMistaken() {
	if !m.everConnected.Load() && m.servers.mistaken() {
		why := m.tried()
		if !refusesCredentials(why) {
			why = fmt.Errorf("%w: %w", ErrMisconfigured, why)
		}
		m.giveUp(why)
	}
}

// giveUp ends Connect with err, which has ClassFinal.
func (m *shared) giveUp(err error) { m.endConnect(&finalError{withoutEnd{err}}) }

// tried returns an error with the outcome of the attempts to connect to the servers.
func (m *shared) tried() error {
	lines, errs := m.servers.report()
	return &triedError{strings.Join(lines, "; "), withoutEnd{errors.Join(errs...)}}
}

// A triedError has the errors of the attempts. The timeout of a dial is not the end of the caller's ctx.
type triedError struct {
	text string
	withoutEnd
}

func (e *triedError) Error() string { return e.text }
