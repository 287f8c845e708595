package session

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"
)

const codeRuntimeInconsistency int32 = -2

func appendMultiHeader(b []byte, op int32) []byte {
	return appendInt(appendBool(appendInt(b, op), false), -1)
}

func appendMultiEnd(b []byte) []byte {
	return appendInt(appendBool(appendInt(b, -1), true), -1)
}

// multiRequest checks and words a transaction.
func (s *Session) multiRequest(ops []any) (*request, error) {
	type part struct {
		op   int32
		fill func([]byte) []byte
	}
	parts := make([]part, 0, len(ops))
	targets := make([]target, 0, len(ops))
	size := multiHeaderSize // of the end
	for i, op := range ops {
		var r *request
		var err error
		switch op := op.(type) {
		case *zk.CreateRequest:
			r, err = s.createRequest(op.Path, op.Data, op.Flags, op.Acl)
		case *zk.DeleteRequest:
			if err = checkPath(op.Path, false); err == nil {
				r = s.deleteRequest(op.Path, op.Version)
			}
		case *zk.SetDataRequest:
			err = checkPath(op.Path, false)
			full := s.m.full(op.Path)
			r = &request{op: opSetData, path: full, size: stringSize(full) + bufferSize(op.Data) + intSize, fill: func(b []byte) []byte {
				return appendInt(appendBuffer(appendString(b, full), op.Data), op.Version)
			}}
		case *zk.CheckVersionRequest:
			err = checkPath(op.Path, false)
			full := s.m.full(op.Path)
			r = &request{op: opCheck, path: full, size: stringSize(full) + intSize, fill: func(b []byte) []byte {
				return appendInt(appendString(b, full), op.Version)
			}}
		default:
			err = fmt.Errorf("%w: a %T, want *zk.CreateRequest, *zk.DeleteRequest, *zk.SetDataRequest or *zk.CheckVersionRequest", zk.ErrBadArguments, op)
		}
		if err != nil {
			return nil, fmt.Errorf("operation %d: %w", i+1, err)
		}
		parts = append(parts, part{r.op, r.fill})
		targets = append(targets, target{r.op, r.path})
		size += multiHeaderSize + r.size
	}
	return &request{op: opMulti, parts: targets, size: size, fill: func(b []byte) []byte {
		for _, p := range parts {
			b = p.fill(appendMultiHeader(b, p.op))
		}
		return appendMultiEnd(b)
	}}, nil
}

// multiAnswer opens the answer to a transaction of n operations.
func (s *Session) multiAnswer(c *call, n int) ([]zk.MultiResponse, error) {
	if err := s.failure(c); err != nil {
		return nil, err
	}
	d := decoder{b: c.body}
	results := make([]zk.MultiResponse, 0, n)
	var first error
	for {
		op, done, _ := d.int(), d.bool(), d.int()
		if d.bad {
			return nil, errMalformed
		}
		if done {
			break
		}
		var r zk.MultiResponse
		switch op {
		case opCreate:
			r.String = s.m.strip(d.string())
		case opCreate2:
			r.String = s.m.strip(d.string())
			r.Stat = d.stat()
		case opSetData:
			r.Stat = d.stat()
		case opDelete, opCheck:
		case -1:
			code := d.int()
			r.Error = errorOfCode(code)
			if c.of != nil && len(results) < len(c.of.parts) {
				part := c.of.parts[len(results)]
				r.Error = s.m.denied(r.Error, part.op, part.path)
			}
			if first == nil && code != 0 && code != codeRuntimeInconsistency {
				first = fmt.Errorf("operation %d: %w", len(results)+1, r.Error)
			}
		default:
			return nil, fmt.Errorf("%w: a result of type %d", errMalformed, op)
		}
		if results = append(results, r); len(results) > n {
			return nil, fmt.Errorf("%w: more than %d results", errMalformed, n)
		}
	}
	if first == nil && len(results) != n {
		return nil, fmt.Errorf("%w: %d results for %d operations", errMalformed, len(results), n)
	}
	return results, first
}

// FailedOp returns the index of the operation that made a Multi fail, by its
// results. It returns -1 if they name none: there was no answer, or the server has
// refused the transaction as a whole.
func FailedOp(results []zk.MultiResponse) int {
	return slices.IndexFunc(results, func(r zk.MultiResponse) bool {
		rolledBack, ok := r.Error.(*codeError)
		return r.Error != nil && !(ok && rolledBack.code == codeRuntimeInconsistency)
	})
}

// MultiSize is how many bytes a Multi of ops would have as a request, to be compared
// with MaxRequest.
func (m *Manager) MultiSize(ops ...any) (int, error) {
	r, err := (&Session{m: m}).multiRequest(ops)
	if err != nil {
		return 0, opError("multi", "", err)
	}
	return headerSize + r.size, nil
}

// MaxRequest is the size in bytes of the largest request that is sent, as given by
// WithMaxRequest.
func (m *Manager) MaxRequest() int { return m.cfg.maxRequest }

// Multi carries out all of ops or none, in order: *zk.CreateRequest,
// *zk.DeleteRequest, *zk.SetDataRequest and *zk.CheckVersionRequest. A create
// without an ACL gets the Manager's default. If one fails nothing is changed, the
// error is that one's, and the results say which it was. If the connection breaks
// before the answer the error is ErrConnectionLost, and if ctx or the session
// ends before it, theirs: all may or may not have happened.
func (s *Session) Multi(ctx context.Context, ops ...any) ([]zk.MultiResponse, error) {
	r, err := s.multiRequest(ops)
	if err != nil {
		return nil, opError("multi", "", err)
	}
	c, err := s.try(ctx, r)
	if err != nil {
		return nil, opError("multi", firstPath(ops), err)
	}
	results, err := s.multiAnswer(c, len(ops))
	return results, opError("multi", firstPath(ops), err)
}

func firstPath(ops []any) string {
	for _, op := range ops {
		switch op := op.(type) {
		case *zk.CreateRequest:
			return op.Path
		case *zk.DeleteRequest:
			return op.Path
		case *zk.SetDataRequest:
			return op.Path
		case *zk.CheckVersionRequest:
			return op.Path
		}
	}
	return ""
}
