package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
)

// A history records the acquisitions and releases of goroutines, for a check against
// a model. Its clock is a counter, so that events at one instant of a bubble have an
// order too.
type history struct {
	clock atomic.Int64

	mu  sync.Mutex
	ops []porcupine.Operation
	// The times at which sessions were ended by force, by the number of the Manager.
	// From then on the session's holds were not protected any more, even if the
	// Manager learnt of the end later.
	broken map[int][]*[2]int64
	lost   int
}

// The events of a history. A writer takes all units.
type (
	take   struct{ units int } // units < 0: a writer
	give   struct{ units int }
	lower  struct{} // a writer goes on as a holder of 1 unit
	resize struct{ n int }
)

// note adds an operation that was called at one time and had returned at another.
func (h *history) note(client int, what any, call, back int64) {
	h.noteResult(client, what, nil, call, back)
}

// noteResult is note for an operation with a result.
func (h *history) noteResult(client int, what, result any, call, back int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: what, Output: result, Call: call, Return: back})
}

// breaks notes that the Manager's session is about to be ended by force, which
// the Manager learns some time later.
func (h *history) breaks(manager int, s *session.Session) {
	b := &[2]int64{h.clock.Add(1), math.MaxInt64}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.broken == nil {
		h.broken = make(map[int][]*[2]int64)
	}
	h.broken[manager] = append(h.broken[manager], b)
	context.AfterFunc(s.Context(), func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		b[1] = h.clock.Add(1)
	})
}

// doubtful reports whether a session that had been ended by force may have granted
// the hold that was called for and returned at these times, before the Manager learnt
// of the end. Nothing can be checked about such a hold.
func (h *history) doubtful(manager int, called, returned int64, err error) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	lost := errors.Is(err, zksync.ErrLost)
	if lost {
		h.lost++
	}
	for _, b := range h.broken[manager] {
		if b[0] < returned && (b[1] > returned || lost && b[1] > called) {
			return true
		}
	}
	return false
}

// end is from when on a hold may have been none any more that was granted and
// left at these times: if its session was ended by force in between, from then on,
// even if the release knew nothing of it.
func (h *history) end(manager int, returned, leaving int64) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, b := range h.broken[manager] {
		if b[0] >= returned && b[0] < leaving {
			return b[0]
		}
	}
	return leaving
}

// hold is one hold from the call on, with its release.
func (h *history) hold(client, manager int, what take, acquire func() (context.Context, error), stay time.Duration, release func() error) error {
	called := h.clock.Add(1)
	held, err := acquire()
	if err != nil {
		return err
	}
	returned := h.clock.Add(1)
	select {
	case <-held.Done():
	case <-time.After(stay):
	}
	leaving := h.clock.Add(1)
	err = release()
	gone := h.clock.Add(1)
	if !h.doubtful(manager, called, returned, err) {
		h.note(client, what, called, returned)
		h.note(client, give(what), h.end(manager, returned, leaving), gone)
	}
	return withoutLoss(err)
}

// withoutLoss removes the error of a loss, for callers that have taken the loss into
// account.
func withoutLoss(err error) error {
	if errors.Is(err, zksync.ErrLost) {
		return nil
	}
	return err
}

// A grant is the result of a take: its token, and the value that granted the units.
// Goroutines that use one value may share a token.
type grant struct {
	token int64
	value any
}

// units is the model of a lock with n units, all of which a writer takes. If the
// takes have grants, the token of a writer is greater than all tokens before, and the
// token of any other taker is greater than the tokens of all writers before.
func units(n int) porcupine.Model {
	type state struct {
		n, held      int
		writer, most grant
	}
	before := func(a, b grant) bool { return a.token < b.token || a == b }
	return porcupine.Model{
		Init: func() any { return state{n: n} },
		Step: func(was, input, output any) (bool, any) {
			s := was.(state)
			switch op := input.(type) {
			case take:
				if g, ok := output.(grant); ok {
					if !before(s.writer, g) || op.units < 0 && !before(s.most, g) {
						return false, s
					}
					if op.units < 0 {
						s.writer = g
					}
					if s.most.token < g.token {
						s.most = g
					}
				}
				if op.units < 0 {
					was := s.held
					s.held = s.n
					return was == 0, s
				}
				s.held += op.units
				return s.held <= s.n, s
			case give:
				if op.units < 0 {
					was := s.held
					s.held = 0
					return was == s.n, s
				}
				s.held -= op.units
				return s.held >= 0, s
			case lower:
				was := s.held
				s.held = 1
				return was == s.n, s
			case resize:
				s.n = op.n
				return true, s
			}
			return false, s
		},
		DescribeOperation: func(input, output any) string {
			if g, ok := output.(grant); ok {
				return fmt.Sprintf("%T%v token %d", input, input, g.token)
			}
			return fmt.Sprintf("%T%v", input, input)
		},
	}
}

// check fails the test if the history does not fit the model of n units.
func (h *history) check(t *testing.T, n int) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	switch porcupine.CheckOperationsTimeout(units(n), h.ops, 10*time.Second) {
	case porcupine.Illegal:
		for _, op := range h.ops {
			t.Logf("%4d-%4d %2d: %T %v", op.Call, op.Return, op.ClientId, op.Input, op.Input)
		}
		t.Error("this history is not one of the model")
	case porcupine.Unknown:
		t.Error("the history could not be checked in time")
	}
}
