package line

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/go-zookeeper/zk"
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
	version  int32       // that the newest create gives the znode
	czxid    int64       // of the znode; 0 until it is known
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

func (h *slotHold) identify() func(*zk.Stat) bool { return h.owns }

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

// created notes the znode that a create of the slot's value has made.
func (h *slotHold) created(stat *zk.Stat) { h.version, h.czxid = stat.Version, stat.Czxid }

// owns reports whether a znode is the znode of the slot. The session may have another ephemeral at the path, for
// example of a session.Ephemeral. Such a znode has version 0, or was written after the transaction that created it:
// only raceRun.create writes to a znode in that very transaction.
func (h *slotHold) owns(stat *zk.Stat) bool {
	if h.czxid != 0 {
		return stat.Czxid == h.czxid
	}
	return stat.EphemeralOwner == h.key.s.ID() && stat.Version == h.version && stat.Mzxid == stat.Czxid
}

// settle waits for the outcome of a create whose caller has gone, removes the znode, and frees the slot.
func (h *slotHold) settle(late <-chan session.MultiOutcome) {
	switch created := <-late; {
	case created.Err == nil && statOf(created.Results) != nil:
		h.created(statOf(created.Results))
		h.giveUp()
	case created.Err == nil || isDoubtful(created.Err):
		h.discardZnodes(nil)
	default:
		h.close()
	}
}

// giveUp removes the znode of a value that does not lead by it, and frees the slot.
func (h *slotHold) giveUp() {
	// First a removal as at the end of a leadership: the janitor deletes no znode that this client may not read.
	if h.deleteZnodes(h.key.s.Context(), nil) != nil {
		h.discardZnodes(nil)
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
	err := deleteRaced(ctx, h)
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
	// After a refusal the janitor looks again for as long as the session lives. The slot may be free by then: see keep.
	owns := func(stat *zk.Stat) bool { return !h.freed.Load() && h.owns(stat) }
	gone, done := h.key.s.DiscardIf(h.key.path, owns), make(chan error, 1)
	go func() {
		defer close(done)
		if refused := <-gone; refused != nil {
			done <- refused
			h.keep()
			return
		}
		h.close() // the znode is gone, or the session is over
	}()
	return []<-chan error{done}
}

// keep keeps the slot of a znode whose removal the server has refused: after a lost answer the
// next value would take the znode for its own. The slot is freed when another client has removed
// the znode, or when the session ends.
func (h *slotHold) keep() { newHoldGuard(h.key.s, nil, []string{h.key.path}, nil, h.owns, h.gone) }
