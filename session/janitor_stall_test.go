package session_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
)

// A stallingServer creates znodes without an answer, and stops in the middle of the listings that look for these
// znodes.
type stallingServer struct {
	hostileServer
	stalled func() bool // whether a listing stalls

	mu       sync.Mutex
	names    []string // of the znodes whose creation was not answered
	silent   sync.Map // the peers that a stall has silenced
	listings atomic.Int32
	deletes  atomic.Int32
}

func (h *stallingServer) reply(p *hostilePeer, xid, op int32, body []byte) bool {
	if _, dead := h.silent.Load(p); dead {
		return true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch op {
	case opCreate:
		path := body[4 : 4+binary.BigEndian.Uint32(body)]
		h.names = append(h.names, string(path[1:]))
		return true // without an answer
	case opChildren:
		h.listings.Add(1)
		list := ints(int32(len(h.names)))
		for _, n := range h.names {
			list = append(append(list, ints(int32(len(n)))...), n...)
		}
		answer := framed(ints(xid), longs(1), ints(0), list, make([]byte, 68))
		if h.stalled() {
			h.silent.Store(p, true)
			answer = answer[:30]
		}
		p.raw(answer)
		return true
	case opDelete:
		h.deletes.Add(1)
	}
	return false
}

const opDelete = 2

// orphans makes creates that are not answered, and ends their calls.
func (h *stallingServer) orphans(t *testing.T, n int) {
	s := current(t, connectTo(t, &h.hostileServer))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			_, err := s.CreateProtected(ctx, fmt.Sprintf("/lock%d-", i), nil, 3)
			mustBe(t, err, context.DeadlineExceeded)
		})
	}
	wg.Wait()
	h.hangUp()
}

// A look-up for an orphan that breaks one connection after another is repeated until it finds the orphan. To see this
// test fail, make chore.decide return another error at maxGuilt.
func TestJanitorGoesOnAfterStalledListings(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		h := &stallingServer{}
		h.stalled = func() bool { return h.listings.Load() <= 7 }
		h.answer = h.reply
		h.orphans(t, 1)
		time.Sleep(time.Hour)
		if h.deletes.Load() == 0 {
			t.Errorf("the orphan is there after an hour and %d listings", h.listings.Load())
		}
	})
}

// Look-ups that always break their connection become rare, regardless of the number of orphans in a directory. To see
// this test fail, remove the call of janitor.avoid, or its loop.
func TestJanitorBreaksFewConnections(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		h := &stallingServer{stalled: func() bool { return true }}
		h.answer = h.reply
		h.orphans(t, 50)
		time.Sleep(time.Hour)
		n := h.listings.Load()
		time.Sleep(time.Hour)
		if n = h.listings.Load() - n; n < 8 || n > 40 {
			t.Errorf("%d listings in an hour, want one in about five minutes", n)
		}
	})
}
