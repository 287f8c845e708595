package session

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// bury closes the connection of a lost session, and waits for the goroutines of the
// session.
func bury(s *Session) {
	if s.remains {
		s.wg.Go(func() {
			// After this time the server has expired the session by itself.
			ctx, cancel := context.WithTimeout(s.m.ctx, 2*s.Timeout())
			defer cancel()
			closeOnServer(ctx, s)
		})
	}
	s.link.shutdown()
	s.wg.Wait()
}

// closePatience is the time in which Manager.Close tries to close the session on a server.
const closePatience = time.Second

// closeOnServer ends on the server a session that this client has given up, so that
// contenders behind its ephemerals need not wait for the expiry. It repeats its attempts
// until ctx ends.
func closeOnServer(ctx context.Context, s *Session) {
	for round := 1; ctx.Err() == nil; round++ {
		server := s.m.servers.next()
		err := closeOn(ctx, s, server)
		if err == nil {
			return
		}
		s.m.servers.failed(server, err)
		s.m.cfg.log.Debug("session was not closed", zap.String("server", server), sessionField(s.id), zap.Error(err))
		if sleep(ctx, s.m.jitter.backoff(round), ctx) != nil {
			return
		}
	}
}

func closeOn(ctx context.Context, s *Session, server string) error {
	bound := s.Timeout() / 3
	if end, ok := ctx.Deadline(); ok {
		// A silent server must leave time for another server.
		bound = min(bound, time.Until(end)/2)
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	conn, raw, err := dialServer(ctx, &s.m.cfg, server)
	if err != nil {
		return err
	}
	defer raw.Close()
	// The exchange below has no ctx. The end of the connection below TLS ends every read
	// and write, and cannot block.
	defer context.AfterFunc(ctx, func() { raw.Close() })()

	l := wire.Lockstep{Conn: conn}
	id, err := l.Connect(s.Timeout(), s.id, s.passwd)
	if err != nil {
		return err
	}
	if id == 0 {
		return nil // the session has expired in the meantime
	} else if id != s.id {
		return fmt.Errorf("session %s requested, but the server answered for session %s", sessionID(s.id), sessionID(id))
	}
	// A server may refuse every request, even closeSession, until the connection is
	// authenticated (code -124).
	sasl, err := startSASL(ctx, s.m.cfg.sasl, server)
	if err == nil && sasl != nil {
		err = sasl.authenticateOn(l)
	}
	if err != nil {
		return err
	}
	return l.CloseSession() // after an error, the next attempt shows the outcome
}
