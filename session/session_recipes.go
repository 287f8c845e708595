package session

import (
	"bytes"
	"context"
	"sync"
	"time"
)

// Deadline is until when the session is proven alive: no server ends it before,
// unless an administrator does. The Deadline moves on when a transaction of the session is
// answered, and passes while the session has no transactions. While a Lease is
// held it is kept ahead, and the Session's context ends if it passes. It is the
// zero time before the first transaction.
func (s *Session) Deadline() time.Time { return s.leases.deadline() }

// Lease opens a lease.
func (s *Session) Lease() *Lease {
	s.m.holds.Store(true)
	return &Lease{v: &s.leases}
}

// NotifyEnd has f called once, with the cause, when the Session's Context ends: before
// the session is closed on the server, and so before anybody else can be granted what
// this session holds. context.AfterFunc does not promise that, since it calls its
// function in another goroutine. f must not block, and must not call NotifyEnd. After
// stop, f is not called any more unless it is being called.
//
// If the Context has ended already, NotifyEnd fails with its cause and does not call f.
func (s *Session) NotifyEnd(f func(cause error)) (stop func(), err error) {
	stop, ok := s.end.add(f)
	if !ok {
		return nil, s.Err()
	}
	return stop, nil
}

// Busy delays Manager.Close, though not beyond the Deadline, until done is
// called: for work that should end in order. It fails once the session is over.
func (s *Session) Busy() (done func(), err error) {
	if err := s.gate.hold(); err != nil {
		return nil, err
	}
	return sync.OnceFunc(s.gate.leave), nil
}

// Pause waits before an attempt is repeated that failed because of something other
// than load, and returns at once in the rounds 0 and 1: the way to a new connection
// has pauses of its own. Later pauses grow to a second, with jitter, in case that
// the attempt itself breaks the connection, or that the answers contradict each
// other. It fails when ctx or the session ends.
func (s *Session) Pause(ctx context.Context, round int) error {
	return s.requests.pause(ctx, round)
}

// StartWait is Manager.StartWait.
func (s *Session) StartWait(op, path string, reason func(context.Context) error) *Wait {
	return s.m.startWait(op, path, reason)
}

// Discard removes a znode in the background, whatever its version. It is repeated
// over lost connections, and when the server refuses it for a transient or an
// unknown reason. The channel is closed when the znode is gone, when the session is
// over, or when the server has refused the removal for good, which is logged.
func (s *Session) Discard(path string) <-chan struct{} {
	return s.janitor.discard(&chore{paths: []string{path}})
}

// DiscardOwn is Discard for an ephemeral of this session that holds certain data, or
// any data if data is nil. It leaves a znode of the same name alone that has another
// owner or other data.
func (s *Session) DiscardOwn(path string, data []byte) <-chan struct{} {
	return s.janitor.discard(&chore{paths: []string{path}, own: true, data: bytes.Clone(data)})
}
