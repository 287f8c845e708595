package session

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// A Followup is a list of reads that are sent right behind a transaction, over the same
// connection, without waiting for the transaction's answer. A server carries out the requests
// of a connection in order, so the reads show the state after the transaction, and need no
// round trip of their own.
//
// The reads are sent again when the connection has ended before it took the transaction, and not
// when a server refuses the transaction for a moment. They may have no results: send them by
// MultiRead then. An answer that is too large or too slow breaks the connection, as with
// MultiRead, and the answer to the transaction has arrived before. A Followup does not repeat
// such reads. So keep their answers small: they also delay the answers to the requests behind them.
// One goroutine at a time uses a Followup.
type Followup struct {
	s        *Session
	reads    [][]Read
	requests []*wire.Request // for reads

	of    *wire.Call   // the attempt of the transaction that the reads are behind
	calls []*wire.Call // of requests; empty if they were not sent, or of has not happened
}

// NewFollowup returns a Followup with one request for each element of reads. It sends only the
// transaction, and has no results:
//
//   - if a path is invalid, or a request is above the limit of WithMaxRequest;
//   - while the servers may not know multiRead: until a MultiRead of the Manager has succeeded, and
//     again after a server has answered that it does not know the operation, or servers have closed
//     connections because of it;
//   - while the session has 512 unanswered requests of Followups, or of callers that have gone.
func (s *Session) NewFollowup(reads ...[]Read) *Followup {
	f := &Followup{s: s, reads: reads}
	var requests []*wire.Request
	for _, some := range reads {
		for _, read := range some {
			if checkPath(read.path, false) != nil {
				return f
			}
		}
		r, n := s.m.records.multiRead(some)
		if n < len(some) || s.m.records.checkSize(len(r.Record)) != nil {
			return f
		}
		r.Then = f.answered
		requests = append(requests, r)
	}
	f.requests = requests
	return f
}

// Multi is Session.Multi, with the reads behind it.
func (f *Followup) Multi(ctx context.Context, ops ...any) ([]zk.MultiResponse, error) {
	return f.multi(ops, func(r *wire.Request) (*wire.Call, error) { return f.s.requests.try(ctx, r) })
}

// MultiOnce is Session.MultiOnce, with the reads behind it.
func (f *Followup) MultiOnce(ctx context.Context, conn uint64, ops ...any) ([]zk.MultiResponse, error) {
	return f.multi(ops, func(r *wire.Request) (*wire.Call, error) { return f.s.requests.once(ctx, r, conn) })
}

func (f *Followup) multi(ops []any, send func(r *wire.Request) (*wire.Call, error)) ([]zk.MultiResponse, error) {
	f.of, f.calls = nil, nil
	var answered *wire.Call
	results, err := f.s.multi(ops, func(r *wire.Request) (c *wire.Call, err error) {
		r.Follow = f.send
		answered, err = send(r)
		return answered, err
	})
	// If the server has refused the attempt, and a later one has happened, the reads show the
	// state before the transaction.
	if err != nil || answered != f.of {
		f.calls = nil
	}
	return results, err
}

// send sends the reads behind an attempt of the transaction.
func (f *Followup) send(w *wire.Conn, c *wire.Call) {
	if f.of != nil && f.of.Err != wire.ErrUnsent {
		return // a server has refused the transaction for a moment
	}
	f.of, f.calls = c, nil
	// Some servers that do not know the operation close the connection, and the outcome of the
	// transaction is lost.
	if !f.s.m.multiReads.proven() {
		return
	}
	// Manager.Close need not know of the reads: it waits for the transaction, and the answers to the
	// reads come before the answer to its own request.
	if !f.s.gate.tryCountReads(len(f.requests)) {
		return
	}
	for _, r := range f.requests {
		f.calls = append(f.calls, w.Send(r))
	}
}

// answered takes the outcome of a request.
func (f *Followup) answered(c *wire.Call) {
	if c.Code == wire.CodeUnimplemented {
		// The next attempt of the transaction must not send the reads again.
		f.s.m.multiReads.lacking()
	}
	f.s.gate.settleAbandoned()
}

// Results waits for the results of the reads, and returns an element for each request. It returns
// nil if there are none:
//
//   - The transaction has failed, or its answer was lost.
//   - The server has refused the attempt in front of the reads for a moment, and a later attempt
//     has happened.
//   - The answer to a read was lost, or is a refusal of the whole request.
//   - The reads were not sent, see NewFollowup.
//   - ctx has ended before the answers arrived.
func (f *Followup) Results(ctx context.Context) (results [][]ReadResult) {
	if len(f.calls) < len(f.reads) {
		return nil
	}
	for i, c := range f.calls {
		select {
		case <-c.Done():
		case <-ctx.Done():
			select {
			case <-c.Done(): // both are ready: the answer counts
			default:
				return nil
			}
		}
		some, err := f.s.m.multiReadAnswer(c, f.reads[i])
		if err != nil {
			return nil
		}
		results = append(results, some)
	}
	return results
}
