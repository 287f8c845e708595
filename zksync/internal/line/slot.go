package line

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// slots are the slots of this process that are in use.
var (
	slotsMu sync.Mutex
	slots   = make(map[slotKey]*slot)
)

type slotKey struct {
	s    *session.Session
	path string
}

// A slot is the right of one value to create an ephemeral znode of a given path under
// a session. Two values of one session would create znodes with the same owner and
// perhaps the same data: after a lost answer nothing would tell which of the values
// has created the znode that is found. A value keeps its slot from before the create
// until the znode is known to be gone.
type slot struct {
	users int // the values that have the slot or wait for it; guarded by slotsMu
	turn  fairMutex
}

// A slotHold is a slot that one value has, or had.
type slotHold struct {
	key      slotKey
	slot     *slot
	unfollow func() bool
	version  int32       // of the znode, once it is created
	czxid    int64       // of the znode, once it is created
	freed    atomic.Bool // another value may have the slot
}

// takeSlot waits until no other value has the slot. It fails when ctx or the session ends.
func takeSlot(ctx context.Context, m *session.Manager, s *session.Session, path string) (*slotHold, error) {
	key := slotKey{s, path}
	slotsMu.Lock()
	sl := slots[key]
	if sl == nil {
		sl = &slot{}
		slots[key] = sl
	}
	// Before the wait: otherwise the holder's dropSlot would delete the slot from the map, and
	// the next value would take another slot of the same path.
	sl.users++
	slotsMu.Unlock()
	if err := sl.turn.lock(ctx, s.Done(), func() *session.Wait {
		return m.StartWaitAt(zap.InfoLevel, "campaign", path, func(context.Context) error {
			return fmt.Errorf("behind another value of this process, which leads or campaigns at this path: %d wait", sl.turn.length())
		})
	}); err != nil {
		// lock fails with ErrClosed when the session ends, and the Manager may be open.
		dropSlot(key, sl)
		if ended := s.Err(); ended != nil && ctx.Err() == nil {
			err = ended
		}
		return nil, err
	}
	h := &slotHold{key: key, slot: sl}
	// Znodes of this session do not exist under the next session.
	h.unfollow = context.AfterFunc(s.Context(), h.free)
	return h, nil
}

// dropSlot forgets a user of a slot.
func dropSlot(key slotKey, sl *slot) {
	slotsMu.Lock()
	defer slotsMu.Unlock()
	if sl.users--; sl.users == 0 {
		delete(slots, key)
	}
}

// gone frees a slot whose znode an operator has removed: otherwise the leader would keep
// the slot until it resigns, and its siblings could not race.
func (h *slotHold) gone() { h.close() }

// close gives the slot to the next value. It may be called more than once.
func (h *slotHold) close() {
	h.unfollow()
	h.free()
}

// free is close for the end of the session.
func (h *slotHold) free() {
	// The end of the session, the guard and the release may all come here.
	if h.freed.CompareAndSwap(false, true) {
		h.slot.turn.unlock()
		dropSlot(h.key, h.slot)
	}
}

// deleteZnodes deletes the znode of the slot. The name says nothing about the owner of a
// znode, so a delete whose answer was lost is repeated only if the session still owns the
// znode.
func (h *slotHold) deleteZnodes(ctx context.Context, _ *Grant) error {
	s := h.key.s
	if h.freed.Load() {
		// The session has ended, or the guard has found that the znode is gone.
		if ended := s.Err(); ended != nil {
			return znode.LossOf(ended)
		}
		return session.ErrRemoved
	}
	// The slot is freed only behind the answer: until then the znode might be taken for
	// the znode of the next value.
	err := deleteRaced(ctx, s, h.key.path, h.version)
	switch session.ClassOf(err) {
	case session.ClassOK, session.ClassNoNode, session.ClassRemoved:
		h.close()
	}
	return err
}

// discardZnodes removes the znode of the slot in the background, and frees the slot when
// the znode is gone.
func (h *slotHold) discardZnodes(*Grant) []<-chan error {
	if h.freed.Load() {
		// Another value may have created the znode at the path, even if our session owns
		// that znode.
		return nil
	}
	gone, done := h.key.s.DiscardCreated(h.key.path, h.czxid), make(chan error, 1)
	go func() {
		// The channel ends with the session, and when the server refuses the removal, too.
		if refused := <-gone; refused != nil {
			done <- refused
		}
		close(done)
		s, path := h.key.s, h.key.path
		if ok, stat, err := s.Exists(s.Context(), path); s.Err() == nil && (err != nil || ok && stat.EphemeralOwner == s.ID()) {
			h.keep()
			return
		}
		h.close()
	}()
	return []<-chan error{done}
}

// keep keeps the slot of a znode whose removal the server has refused: after a lost answer the
// next value would take the znode for its own. The slot is freed when another client has removed
// the znode, or when the session ends.
func (h *slotHold) keep() { newHoldGuard(h.key.s, nil, []string{h.key.path}, nil, h.gone) }
