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

// A Read is one of the reads of a MultiRead: ReadData or ReadChildren makes it.
type Read struct {
	path     string
	children bool
}

// ReadData reads the data and the Stat of a znode.
func ReadData(path string) Read { return Read{path: path} }

// ReadChildren reads the names of the children of a znode.
func ReadChildren(path string) Read { return Read{path: path, children: true} }

// A ReadResult is what came of a Read.
type ReadResult struct {
	Data     []byte   // of ReadData
	Stat     *zk.Stat // of ReadData
	Children []string // of ReadChildren, sorted
	Err      error    // of this very read: it is zk.ErrNoNode or zk.ErrNoAuth, say
}

func (r Read) name() string {
	if r.children {
		return "children"
	}
	return "get"
}

// multiReadWindow is how many reads are under way at once where the server does
// not know multiRead.
const multiReadWindow = 128

// MultiRead carries out many reads in one request, and returns what came of
// each, in order. The error is nil if all were carried out; those that the server
// refused have theirs in their result. Other writes may happen between two of the
// reads. Like every read it is repeated over lost connections.
//
// All the data comes in one frame, whose length the server does not bound, and is
// in memory at once: ask for no more than there is room for. Paths that do not fit
// into one request (see WithMaxRequest) go in several, one after the other. An answer
// that is too large or too slow breaks the connection (see ErrAnswerTooLarge). After
// the second time the reads are sent one by one.
//
// ZooKeeper before 3.6 does not know the operation. The reads are then sent one by
// one, many at a time, and so are those of later calls on the same Manager for a while.
func (s *Session) MultiRead(ctx context.Context, reads ...Read) ([]ReadResult, error) {
	for i, read := range reads {
		if err := checkPath(read.path, false); err != nil {
			return nil, opError("multiRead", reads[0].path, fmt.Errorf("read %d: %w", i+1, err))
		}
	}
	var results []ReadResult
	for len(reads) > 0 {
		r, n := s.m.records.multiRead(reads)
		some, err := multiRead(ctx, s, r, reads[:n])
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

func multiRead(ctx context.Context, s *Session, r *wire.Request, reads []Read) ([]ReadResult, error) {
	hangups, guilty := 0, 0
	for round := 0; s.m.multiReads.usable(); round++ {
		if err := s.Pause(ctx, round); err != nil {
			return nil, err
		}
		c, err := s.requests.try(ctx, r)
		guilty += guilt(err)
		switch {
		case guilty >= maxGuilt:
			// The parts of an answer that is too large may be small enough.
			return readSingly(ctx, s, reads)
		case ClassOf(err) == ClassConnectionLost:
			// Some servers that do not know an operation hang up without a word.
			if hangups++; hangups < 3 {
				continue
			}
			results, err := readSingly(ctx, s, reads)
			if err == nil {
				// What the server does not stumble over one by one, it cannot take
				// together.
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
	}
	return readSingly(ctx, s, reads)
}

// multiRead makes the request of a MultiRead, of the first n reads: as many as fit, and
// one at least.
func (b *records) multiRead(reads []Read) (r *wire.Request, n int) {
	size := wire.MultiHeaderSize
	for _, read := range reads {
		size += wire.MultiHeaderSize + 4 + len(b.chroot) + len(read.path) + 1
	}
	record := make(wire.Encoder, 0, min(size, b.max))
	for i, read := range reads {
		op := wire.OpGetData
		if read.children {
			op = wire.OpGetChildren
		}
		longer := record.MultiHeader(op).String(b.chroot.full(read.path)).Bool(false)
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
	for {
		op, end := d.MultiHeader()
		if d.Bad {
			return nil, wire.ErrMalformed
		}
		if end {
			break
		}
		if len(results) == len(reads) {
			return nil, fmt.Errorf("%w: more than %d results", wire.ErrMalformed, len(reads))
		}
		var r ReadResult
		read := reads[len(results)]
		switch {
		case op == wire.OpGetData && !read.children:
			// Whoever keeps the data of one need not keep that of all.
			r.Data, r.Stat = bytes.Clone(d.Buffer()), d.Stat()
		case op == wire.OpGetChildren && read.children:
			r.Children = d.Strings()
			slices.Sort(r.Children)
		case op == -1:
			code := d.Int()
			if classOfCode(code) == ClassTransient {
				return nil, errorOfCode(code)
			}
			r.Err = opError(read.name(), read.path, m.denied(errorOfCode(code), wire.OpGetData, m.full(read.path)))
		default:
			return nil, fmt.Errorf("%w: a result of type %d", wire.ErrMalformed, op)
		}
		results = append(results, r)
	}
	if len(results) != len(reads) {
		return nil, fmt.Errorf("%w: %d results for %d reads", wire.ErrMalformed, len(results), len(reads))
	}
	return results, nil
}

// readSingly is MultiRead without the help of the server.
func readSingly(ctx context.Context, s *Session, reads []Read) ([]ReadResult, error) {
	results := make([]ReadResult, len(reads))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(multiReadWindow)
	for i, read := range reads {
		g.Go(func() error {
			r := &results[i]
			if read.children {
				r.Children, _, r.Err = s.Children(ctx, read.path)
			} else {
				r.Data, r.Stat, r.Err = s.Get(ctx, read.path)
			}
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

// refusedRead says whether a read has failed by the word of the server.
func refusedRead(err error) bool {
	class := ClassOf(err)
	return class == ClassNoNode || class == ClassNoAuth
}
