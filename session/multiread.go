package session

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// A Read is one of the reads of a MultiRead. Use ReadData or ReadChildren to make one.
type Read struct {
	path     string
	children bool
}

// ReadData reads the data and the Stat of a znode.
func ReadData(path string) Read { return Read{path: path} }

// ReadChildren reads the names of the children of a znode.
func ReadChildren(path string) Read { return Read{path: path, children: true} }

// A ReadResult is the outcome of one Read.
type ReadResult struct {
	Data     []byte   // of ReadData
	Stat     *zk.Stat // of ReadData
	Children []string // of ReadChildren, sorted
	Err      error    // the error of this read, for example zk.ErrNoNode or zk.ErrNoAuth
}

func (r Read) name() string {
	if r.children {
		return "children"
	}
	return "get"
}

// multiReadWindow is the number of reads in flight at the same time if the server does
// not know multiRead.
const multiReadWindow = 128

// MultiRead carries out many reads in one request, and returns their results in order.
// The error is nil if there is a result of every read. The result of a refused read has
// the error of that read. Other writes may happen between two of the reads. Like every
// read, MultiRead is repeated over lost connections.
//
// All the data comes in one frame and is in memory at once. The server does not limit the
// length of the frame, so request no more than fits into memory. If the paths do not fit
// into one request (see WithMaxRequest), MultiRead sends several requests, one after
// another. An answer that is too large or too slow breaks the connection (see
// ErrAnswerTooLarge). After the second such answer, MultiRead sends the reads one by one,
// and a read whose own answer is too large has ErrAnswerTooLarge as its result.
//
// ZooKeeper before 3.6 does not know the operation. MultiRead then sends the reads one by
// one, many at a time, and does the same in later calls on the same Manager for a while.
func (s *Session) MultiRead(ctx context.Context, reads ...Read) ([]ReadResult, error) {
	for i, read := range reads {
		if err := checkPath(read.path, false); err != nil {
			return nil, opError("multiRead", reads[0].path, fmt.Errorf("read %d: %w", i+1, err))
		}
	}
	var results []ReadResult
	large := false // the answer to one of the requests was too large or too slow
	for len(reads) > 0 {
		r, n := s.m.records.multiRead(reads)
		some, err := multiRead(ctx, s, r, reads[:n], &large)
		if err != nil {
			return nil, opError("multiRead", reads[0].path, err)
		}
		if results == nil && n == len(reads) {
			return some, nil
		}
		results, reads = append(results, some...), reads[n:]
	}
	return results, nil
}

func multiRead(ctx context.Context, s *Session, r *wire.Request, reads []Read, large *bool) (results []ReadResult, err error) {
	hangups, guilty := 0, 0
	var f *failures
	defer func() { err = f.end(ctx, err) }()
	for round := 0; s.m.multiReads.usable() && !*large; round++ {
		if err := s.Pause(ctx, round); err != nil {
			return nil, err
		}
		c, err := s.requests.try(ctx, r)
		guilty += guilt(err)
		switch {
		case guilty >= maxGuilt:
			// The parts of an answer that is too large may be small enough.
			*large = true
			continue
		case ClassOf(err) == ClassConnectionLost:
			// Some servers that do not know an operation close the connection without an
			// answer.
			if hangups++; hangups < 3 {
				continue
			}
			results, err := readSingly(ctx, s, reads, multiReadWindow)
			if err == nil {
				// The server answered each of the reads, so the operation is the likely
				// reason why it closed the connection.
				s.m.multiReads.suspect()
			}
			return results, err
		case err != nil:
			return nil, err
		case c.Code == wire.CodeUnimplemented:
			s.m.multiReads.lacking()
			continue
		}
		s.m.multiReads.works()
		results, err := s.m.multiReadAnswer(c, reads)
		if ClassOf(err) != ClassTransient {
			return results, err
		}
		f = f.orNew(ctx, s.m, "multiRead", reads[0].path)
		f.note(err)
	}
	if *large {
		// Each answer that is too large breaks the connection, and with it the requests of other
		// callers: one at a time.
		return readSingly(ctx, s, reads, 1)
	}
	return readSingly(ctx, s, reads, multiReadWindow)
}

// multiRead builds the request for a MultiRead of the first n reads. n is as large as
// fits, and at least one.
func (b *records) multiRead(reads []Read) (r *wire.Request, n int) {
	size := wire.MultiHeaderSize
	for _, read := range reads {
		size += wire.MultiHeaderSize + 4 + len(b.chroot) + len(read.path) + 1
	}
	record := make(wire.Encoder, 0, min(size, b.max))
	for i, read := range reads {
		op := wire.OpGetData
		if read.children {
			// The server accepts getChildren within a multiRead, and does not accept
			// getChildren2.
			op = wire.OpGetChildren
		}
		longer := record.MultiHeader(op).String(b.chroot.full(read.path)).Bool(false)
		// The first read goes out in any case. If it is too large, the request fails with
		// ErrTooLarge.
		if i > 0 && b.checkSize(len(longer)+wire.MultiHeaderSize) != nil {
			break
		}
		record, n = longer, i+1
	}
	return &wire.Request{Op: wire.OpMultiRead, Record: record.MultiEnd()}, n
}

// multiReadAnswer decodes the answer to a MultiRead.
func (m *shared) multiReadAnswer(c *wire.Call, reads []Read) ([]ReadResult, error) {
	if err := failureOf(c); err != nil {
		return nil, err
	}
	d := wire.Decoder{B: c.Body}
	results := make([]ReadResult, 0, len(reads))
	for op := range d.Results() {
		if len(results) == len(reads) {
			return nil, fmt.Errorf("%w: more than %d results", wire.ErrMalformed, len(reads))
		}
		var r ReadResult
		read := reads[len(results)]
		switch {
		case op == wire.OpGetData && !read.children:
			// Clone the data: otherwise a caller that keeps the data of one read keeps
			// the whole answer.
			r.Data, r.Stat = bytes.Clone(d.Buffer()), d.Stat()
		case op == wire.OpGetChildren && read.children:
			r.Children = d.Strings()
			slices.Sort(r.Children)
		case op == -1:
			code := d.Int()
			switch {
			case code == 0: // of a hostile server: the result of a read has data
				return nil, wire.ErrMalformed
			case classOfCode(code) == ClassTransient: // no result: the whole request is sent again
				return nil, errorOfCode(code)
			}
			r.Err = opError(read.name(), read.path, m.cfg.denied(errorOfCode(code), wire.OpGetData, m.full(read.path)))
		default:
			return nil, fmt.Errorf("%w: a result of type %d", wire.ErrMalformed, op)
		}
		results = append(results, r)
	}
	if d.Bad {
		return nil, wire.ErrMalformed
	}
	if len(results) != len(reads) {
		return nil, fmt.Errorf("%w: %d results for %d reads", wire.ErrMalformed, len(results), len(reads))
	}
	return results, nil
}

// readSingly does the same as MultiRead by single reads, of which up to window are in flight.
func readSingly(ctx context.Context, s *Session, reads []Read, window int) ([]ReadResult, error) {
	results := make([]ReadResult, len(reads))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(window)
	for i, read := range reads {
		g.Go(func() error {
			r := &results[i]
			if read.children {
				r.Children, _, r.Err = s.Children(ctx, read.path)
			} else {
				r.Data, r.Stat, r.Err = s.Get(ctx, read.path)
			}
			// The refusal, or that the answer is too large, is the result of this read. Any other
			// error leaves reads without a result.
			if refusedRead(r.Err) {
				return nil
			}
			return r.Err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return results, nil
}

// refusedRead reports whether err is the result of a read: a server's refusal, or ErrAnswerTooLarge.
func refusedRead(err error) bool {
	switch ClassOf(err) {
	case ClassNoNode, ClassNoAuth, ClassUnknown:
		return true
	case ClassFinal:
		return !IsAnswerTooSlow(err)
	}
	return false
}
