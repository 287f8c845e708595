package session

import (
	"context"
	"fmt"

	"go.uber.org/zap"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// bury takes down a session that was lost.
func bury(s *Session) {
	if s.remains {
		s.wg.Go(func() { closeOnServer(s) })
	}
	s.link.shutdown()
	s.wg.Wait()
}

// closeOnServer ends a session that we have given up but the server may still
// have, so that contenders in line behind its ephemerals need not wait for its
// expiry. It takes the session over on a connection of its own, since a
// zk.Conn cannot be told to, and tries until the server must have expired it.
func closeOnServer(s *Session) {
	ctx, cancel := context.WithTimeout(s.m.ctx, 2*s.Timeout())
	defer cancel()
	for round := 1; ctx.Err() == nil; round++ {
		server := s.m.servers.next()
		err := closeOn(ctx, s, server)
		if err == nil {
			return
		}
		s.m.servers.failed(server, err)
		s.m.cfg.log.Debug("closing a lost session", zap.String("server", server), sessionField(s.id), zap.Error(err))
		if sleep(ctx, s.m.jitter.backoff(round), s.m.ctx) != nil {
			return
		}
	}
}

func closeOn(ctx context.Context, s *Session, server string) error {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout()/3)
	defer cancel()
	conn, raw, err := dialServer(ctx, &s.m.cfg, "tcp", server)
	if err != nil {
		return err
	}
	defer raw.Close()
	defer context.AfterFunc(ctx, func() { raw.Close() })()

	l := wire.Lockstep{Conn: conn}
	id, err := l.Connect(s.Timeout(), s.id, s.passwd)
	if err != nil {
		return err
	}
	if id == 0 {
		return nil // expired in the meantime
	} else if id != s.id {
		return fmt.Errorf("asked for session %s, was given %s", sessionID(s.id), sessionID(id))
	}
	sasl, err := startSASL(ctx, s.m.cfg.sasl, server)
	if err == nil && sasl != nil {
		err = sasl.authenticateOn(l)
	}
	if err != nil {
		return err
	}
	return l.CloseSession() // without an answer the next attempt will tell
}
