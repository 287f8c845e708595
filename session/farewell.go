package session

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"go.uber.org/zap"
)

// closeOnServer ends a session that we have given up but the server may still
// have, so that those in line behind its ephemerals need not wait for its
// expiry. It takes the session over on a connection of its own, since a
// zk.Conn cannot be told to, and tries until the server must have expired it.
func (s *Session) closeOnServer() {
	ctx, cancel := context.WithTimeout(s.m.ctx, 2*s.Timeout())
	defer cancel()
	for round := 1; ctx.Err() == nil; round++ {
		server := s.m.servers.next()
		err := s.closeOn(ctx, server)
		if err == nil {
			return
		}
		s.m.servers.failed(server, err)
		s.m.cfg.log.Debug("closing a lost session", zap.String("server", server), sessionField(s.id), zap.Error(err))
		if s.m.sleep(ctx, s.m.jitter.spread(backoff(round, firstBackoff, maxBackoff))) != nil {
			return
		}
	}
}

func (s *Session) closeOn(ctx context.Context, server string) error {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout()/3)
	defer cancel()
	conn, raw, err := s.m.dialServer(ctx, "tcp", server)
	if err != nil {
		return err
	}
	defer raw.Close()
	defer context.AfterFunc(ctx, func() { raw.Close() })()

	b := appendInt(make([]byte, 4), 0)
	b = appendLong(b, 0) // any server may close it, however far behind
	b = appendInt(b, int32(s.Timeout()/time.Millisecond))
	b = appendBuffer(appendLong(b, s.id), s.passwd)
	answer, err := exchange(conn, b)
	if err != nil {
		return &unansweredError{err}
	}
	d := decoder{b: answer[4:]}
	d.take(8)
	if id := d.long(); d.bad || id == 0 {
		return nil // expired in the meantime
	} else if id != s.id {
		return fmt.Errorf("asked for session %s, was given %s", sessionID(s.id), sessionID(id))
	}
	sasl, err := s.m.startSASL(ctx, server)
	if err == nil && sasl != nil {
		err = sasl.authenticateOn(conn)
	}
	if err != nil {
		return err
	}
	// Without an answer it may be there still; the next attempt will tell.
	_, err = exchange(conn, appendInt(appendInt(make([]byte, 4), 1), opCloseSession))
	return err
}

// maxExchanged is enough for the token of a SASL mechanism.
const maxExchanged = 64 << 10

func exchange(conn io.ReadWriter, frame []byte) ([]byte, error) {
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	if _, err := conn.Write(frame); err != nil {
		return nil, err
	}
	return readAnswer(conn, maxExchanged)
}
