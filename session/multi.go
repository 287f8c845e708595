package session

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// multiAnswer decodes the answer to a transaction of n operations. err is as in failure.
func (m *shared) multiAnswer(c *wire.Call, err error, n int) ([]zk.MultiResponse, error) {
	if err := m.failure(c, err); err != nil {
		return nil, err
	}
	d := wire.Decoder{B: c.Body}
	results := make([]zk.MultiResponse, 0, n)
	var first error
	failed := false // the transaction, by one of the results
	for op := range d.Results() {
		var r zk.MultiResponse
		switch op {
		case wire.OpCreate:
			r.String = m.strip(d.String())
		// The server answers createContainer within a transaction by this type.
		case wire.OpCreate2:
			r.String = m.strip(d.String())
			r.Stat = d.Stat()
		case wire.OpSetData:
			r.Stat = d.Stat()
		case wire.OpDelete, wire.OpCheck:
		case -1:
			failed = true
			code := d.Int()
			r.Error = errorOfCode(code)
			// A hostile server may send more results than there are operations.
			if len(results) < len(c.Parts) {
				part := c.Parts[len(results)]
				r.Error = m.cfg.denied(r.Error, part.Op, part.Path)
			}
			// The results ahead of the failed operation have the code 0, and the results
			// behind it have -2.
			if first == nil && code != 0 && code != wire.CodeRuntimeInconsistency {
				first = fmt.Errorf("operation %d: %w", len(results)+1, r.Error)
			}
		default:
			return nil, fmt.Errorf("%w: a result of type %d", wire.ErrMalformed, op)
		}
		if results = append(results, r); len(results) > n {
			return nil, fmt.Errorf("%w: more than %d results", wire.ErrMalformed, n)
		}
	}
	if d.Bad {
		return nil, wire.ErrMalformed
	}
	if first == nil && failed {
		return nil, fmt.Errorf("%w: a transaction that has failed without an operation that has failed", wire.ErrMalformed)
	}
	if first == nil && len(results) != n {
		return nil, fmt.Errorf("%w: %d results for %d operations", wire.ErrMalformed, len(results), n)
	}
	return results, first
}

// FailedOp returns the index of the operation that made a Multi fail, from the results of
// the Multi. It returns -1 if no result shows the operation: there was no answer, or the
// server has refused the transaction as a whole.
func FailedOp(results []zk.MultiResponse) int {
	return slices.IndexFunc(results, func(r zk.MultiResponse) bool {
		rolledBack, ok := r.Error.(*codeError)
		return r.Error != nil && !(ok && rolledBack.code == wire.CodeRuntimeInconsistency)
	})
}

// MultiSize returns the size in bytes of the request for a Multi of ops. Compare it with
// MaxRequest.
func (m *Manager) MultiSize(ops ...any) (int, error) {
	r := m.records.multi(ops)
	if r.Invalid != nil {
		return 0, opError("multi", "", r.Invalid)
	}
	return wire.HeaderSize + len(r.Record), nil
}

// MaxRequest returns the size in bytes of the largest request that may be sent, see
// WithMaxRequest.
func (m *Manager) MaxRequest() int { return m.cfg.maxRequest }

// Multi carries out all of ops in order, or none of them. An operation is a
// *zk.CreateRequest, *zk.DeleteRequest, *zk.SetDataRequest or *zk.CheckVersionRequest. A
// create without an ACL gets the Manager's default. If an operation fails, nothing is
// changed, the error is the error of that operation, and FailedOp finds the operation in
// the results.
//
// If the connection breaks before the answer, the error is ErrConnectionLost. If ctx or
// the session ends before the answer, the error is the error of ctx or of the session. In
// these cases the transaction may or may not have happened. Multi is never repeated over a
// lost connection. A caller that repeats it must know that a version does not tell a znode
// from a later znode of the same path: see Set.
func (s *Session) Multi(ctx context.Context, ops ...any) ([]zk.MultiResponse, error) {
	return s.multi(ops, func(r *wire.Request) (*wire.Call, error) { return s.requests.try(ctx, r) })
}

// MultiOnce is like Multi, for a transaction that relies on a read: it is sent once, over the
// connection with the number conn (see Connection), or over any connection if conn is 0. A read
// while Connection returned 0 does not say over which connection it went: read again then. If the
// server refuses the transaction for a reason that may pass, or another connection is in use, the
// error has ClassTransient: the transaction has not happened. Multi would send it again, when the
// read may not be true any more.
func (s *Session) MultiOnce(ctx context.Context, conn uint64, ops ...any) ([]zk.MultiResponse, error) {
	return s.multi(ops, func(r *wire.Request) (*wire.Call, error) { return s.requests.once(ctx, r, conn) })
}

// A MultiOutcome is the outcome of a transaction whose caller has gone: the results of Multi.
type MultiOutcome struct {
	Results []zk.MultiResponse
	Err     error
}

// MultiLate is Multi, for a caller that must learn whether the transaction has happened, even if ctx or the session ends
// before the answer. Only then, and only if the transaction was sent, late is not nil: it receives the outcome once, when
// the answer has arrived or the connection has ended, and is not closed. The outcome is an error of ClassTransient if the
// transaction has not happened and may succeed later. If late is nil, an error of ctx means that the transaction has not happened.
func (s *Session) MultiLate(ctx context.Context, ops ...any) (results []zk.MultiResponse, late <-chan MultiOutcome, err error) {
	outcome := make(chan MultiOutcome, 1) // a buffer: nobody need receive
	var sent *wire.Call                   // the newest attempt
	results, err = s.multi(ops, func(r *wire.Request) (*wire.Call, error) {
		r.Follow = func(_ *wire.Conn, c *wire.Call) { sent = c }
		r.Late = func(c *wire.Call) {
			c, err := answerOf(c, c.Err)
			if err == wire.ErrUnsent {
				err = errOtherConnection
			}
			results, err := s.m.multiAnswer(c, err, len(ops))
			outcome <- MultiOutcome{results, err}
		}
		return s.requests.try(ctx, r)
	})
	if sent != nil && sent.Abandoned() {
		late = outcome
	}
	return results, late, err
}

func (s *Session) multi(ops []any, send func(r *wire.Request) (*wire.Call, error)) ([]zk.MultiResponse, error) {
	r := s.m.records.multi(ops)
	c, err := send(r)
	results, err := s.m.multiAnswer(c, err, len(ops))
	path := ""
	if len(r.Parts) > 0 {
		path = s.m.strip(r.Parts[0].Path)
	}
	return results, opError("multi", path, err)
}
