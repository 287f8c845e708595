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

// A history records the acquisitions and releases of goroutines, to be checked against a model. Its
// clock is a counter, so that events at the same instant of a bubble are also ordered.
type history struct {
	clock atomic.Int64

	mu  sync.Mutex
	ops []porcupine.Operation
	// The times at which sessions were ended by force, by the number of the Manager. From then on
	// the session's holds were no longer protected, even if the Manager learned of the end later.
	broken map[int][]*[2]int64
	lost   int
}

// The events of a history. A writer takes all units.
type (
	take   struct{ units int } // units < 0 is a writer
	give   struct{ units int }
	lower  struct{} // a writer continues as a holder of 1 unit
	resize struct{ n int }
)

// note adds an operation with the times of its call and of its return.
func (h *history) note(client int, what any, call, back int64) {
	h.noteResult(client, what, nil, call, back)
}

// noteResult is note for an operation with a result.
func (h *history) noteResult(client int, what, result any, call, back int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: what, Output: result, Call: call, Return: back})
}

// breaks records that the Manager's session is about to be ended by force. The Manager learns of
// the end later.
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

// doubtful reports whether a session that was ended by force may have granted the hold with these
// times of call and return, before the Manager learned of the end. Such a hold cannot be checked.
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

// end returns the time from which on a hold with these times of grant and release may have been
// lost: the time at which its session was ended by force, if that was in between, even if the
// release did not report the loss.
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

// hold makes one hold: it acquires, stays and releases.
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

// withoutLoss removes the error of a loss, for callers that have handled the loss.
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

// units returns the model of a lock with n units, all of which a writer takes. If the takes have
// grants, the token of a writer is greater than all earlier tokens, and the token of any other
// taker is greater than the tokens of all earlier writers.
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

// check fails the test if the history does not match the model of n units.
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
