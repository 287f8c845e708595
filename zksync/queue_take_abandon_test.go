package zksync_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// abandoning has cancel called when the request that removes a message has been
// committed, and its answer come a second later.
func abandoning(srv *zksynctest.Server, s *session.Session, at zksynctest.Moment, cancel func()) {
	srv.Inject(zksynctest.Fault{Session: s.ID(), Op: zkserver.OpMulti, Match: removes, At: at, Do: zksynctest.Call(func() {
		cancel()
		time.Sleep(time.Second)
	})})
}

// A Take that is cancelled while its removal is under way returns the data with
// ErrOutcomeUnknown and the reason, and requeues nothing (take.go: the return of
// data after followRemoval): also a message above WithMaxRequest,
// and in a queue that is full, where a message could not be put back.
func TestAbandonedTakeReturnsTheData(t *testing.T) {
	large := bytes.Repeat([]byte("x"), 5000)
	type taker interface {
		Take(context.Context) ([]byte, error)
		TryTake(context.Context) ([]byte, bool, error)
		Close() error
	}
	for name, c := range map[string]struct {
		data []byte
		opts []session.Option
		try  bool
	}{
		"small":                {data: []byte("small")},
		"TryTake":              {data: []byte("small"), try: true},
		"above WithMaxRequest": {data: large, opts: []session.Option{session.WithMaxRequest(2000)}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := srv.Connect(t, c.opts...)
				producer := zksync.NewQueue(srv.Connect(t), queuePath, zksync.WithCapacity(2))
				defer closeQueue(t, producer)
				for _, data := range [][]byte{[]byte("first"), c.data} {
					if err := producer.Put(t.Context(), data); err != nil {
						t.Fatal(err)
					}
				}
				var q taker = zksync.NewQueue(m, queuePath)
				if data, err := q.Take(t.Context()); string(data) != "first" || err != nil {
					t.Fatalf("Take: %q, %v", data, err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				abandoning(srv, live(t, m), zksynctest.AfterCommit, cancel)
				var data []byte
				var err error
				if c.try {
					data, _, err = q.TryTake(ctx)
				} else {
					data, err = q.Take(ctx)
				}
				if !bytes.Equal(data, c.data) || !errors.Is(err, zksync.ErrOutcomeUnknown) || !errors.Is(err, context.Canceled) {
					t.Errorf("%d bytes, %v; want %d bytes and ErrOutcomeUnknown", len(data), err, len(c.data))
				}
				time.Sleep(time.Minute)
				wantLeft(t, srv, 0, 0)
				closeQueue(t, q)
			})
		})
	}
}

// A Take that is given up before the server has heard of its removal leaves a message
// that the same value delivers again.
func TestAbandonedTakeWhoseRemovalFails(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		offer(t, srv.Connect(t), queuePath, 0, 2)
		q := zksync.NewQueue(m, queuePath)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		f := zksynctest.Fault{Session: live(t, m).ID(), Op: zkserver.OpMulti, Match: removes, At: zksynctest.BeforeCommit, Do: zksynctest.Call(cancel)}
		srv.Inject(f)
		f.Do = zksynctest.Disconnect
		srv.Inject(f)
		data, err := q.Take(ctx)
		if string(data) != "0" || !errors.Is(err, zksync.ErrOutcomeUnknown) {
			t.Fatalf("Take: %q, %v", data, err)
		}
		time.Sleep(time.Minute)
		items, _ := leftItems(srv, queuePath)
		for i := 2 - len(items); i < 2; i++ {
			takes(t, q, fmt.Sprint(i))
		}
		closeQueue(t, q)
		wantLeft(t, srv, 0, 0)
	})
}

// Close waits for the answer to a removal of Take, so that the Take has an outcome
// (take.go: the context removing).
func TestCloseWaitsForTake(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		offer(t, srv.Connect(t), queuePath, 0, 2)
		q := zksync.NewQueue(m, queuePath)
		closed := make(chan struct{})
		abandoning(srv, live(t, m), zksynctest.AfterCommit, func() {
			go func() {
				defer close(closed)
				closeQueue(t, q)
			}()
		})
		if data, err := q.Take(t.Context()); string(data) != "0" || err != nil {
			t.Errorf("Take: %q, %v", data, err)
		}
		<-closed
		wantLeft(t, srv, 1, 0)
	})
}

// The partition of a message is removed and created again while a Take that was given
// up waits for its answer: nothing panics, and messages of the new partition are
// delivered.
func TestAbandonedTakeInAPartitionThatIsMadeAnew(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		producer, q := zksync.NewPriorityQueue(srv.Connect(t), queuePath), zksync.NewPriorityQueue(m, queuePath)
		defer closeQueue(t, producer)
		if err := producer.Put(t.Context(), []byte("old"), 7); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		abandoning(srv, live(t, m), zksynctest.AfterCommit, func() {
			cancel()
			removeTree(srv, queuePath+"/p-007")
		})
		if data, err := q.Take(ctx); string(data) != "old" || !errors.Is(err, zksync.ErrOutcomeUnknown) {
			t.Errorf("Take: %q, %v", data, err)
		}
		time.Sleep(time.Minute)
		if err := producer.Put(t.Context(), []byte("new"), 7); err != nil {
			t.Fatal(err)
		}
		if data, err := q.Take(t.Context()); string(data) != "new" || err != nil {
			t.Errorf("Take: %q, %v", data, err)
		}
		closeQueue(t, q)
	})
}
