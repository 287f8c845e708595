package commit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A Gate decides how many entries may go into the next request, and under which
// condition.
type Gate interface {
	// Admit waits until there is room for an entry, and returns for how many there is. The
	// operations go ahead of the entries' operations. The room stays reserved until Passed or
	// Refused is called.
	Admit(ctx context.Context, s *session.Session) (ops []any, room int, err error)
	// Passed is called when n entries have happened.
	Passed(n int)
	// Refused is called when the server has refused the operations of Admit, and nothing has
	// happened, and when the marker was lost. What the gate has read may be wrong then. If
	// Refused returns nil, Admit is called again.
	Refused(err error) error
	// Waiting returns the reason why Admit waits, nil if Admit does not wait. Any
	// goroutine may call it.
	Waiting() error
}

// An openGate admits every entry.
type openGate struct{}

func (openGate) Admit(context.Context, *session.Session) ([]any, int, error) {
	return nil, math.MaxInt, nil
}
func (openGate) Passed(int)          {}
func (openGate) Refused(error) error { return nil }
func (openGate) Waiting() error      { return nil }

// A Capacity is a Gate that limits the number of messages in a directory. Every request
// also writes to one znode, at the version that it had when the messages were counted: so
// if two Committers have counted the same messages, only one of them can put.
type Capacity struct {
	Max      int
	Dir      string                                 // of the messages
	Path     string                                 // of the znode
	NumberOf func(name string) (seq int32, ok bool) // as of a Committer
	MakeDir  func(context.Context, *session.Session, string) error
	OnCount  func(n int) // is called with each exact count
	// Unmarked says that the requests write no marker. A marker tells that the znode at Path has gone with
	// its directory, and without one another znode may have the version of the last count.
	Unmarked bool

	known   bool
	version int32
	used    int // an upper bound, unless producers without a Capacity have put messages since the count

	counted time.Time     // the end of the last count
	took    time.Duration // its length

	full    atomic.Pointer[error] // that there is no room; nil once there was room
	refused atomic.Int32          // how many times in a row other producers were faster
}

// maxCountAge is the time after which a producer counts again. Until then, only this producer knows the
// version of the znode. Meanwhile other producers, which must read it, have time to put.
const maxCountAge = 100 * time.Millisecond

// errNoRoom is the reason of a wait that is about to end.
var errNoRoom = errors.New("for room")

func (g *Capacity) Waiting() error {
	if full := g.full.Load(); full != nil {
		return *full
	}
	if n := g.refused.Load(); n > 1 {
		return fmt.Errorf("%w: other producers were faster %d times", errNoRoom, n)
	}
	return nil
}

func (g *Capacity) Admit(ctx context.Context, s *session.Session) ([]any, int, error) {
	var wait *session.Wait
	defer func() { wait.Stop() }()
	g.full.Store(nil)
	g.known = g.known && !g.Unmarked
	for round := 0; !g.known || g.used >= g.Max; round++ {
		if err := s.Pause(ctx, round-1); err != nil {
			return nil, 0, err
		}
		// After other producers were faster twice, ahead of the count. Without a random time, two producers
		// whose requests take the same time might keep their order for ever.
		if g.refused.Load() > 1 {
			if err := znode.WaitUntil(ctx, s, nil, time.Now().Add(1+rand.N(g.took+1))); err != nil {
				return nil, 0, err
			}
		}
		began := time.Now()
		w, err := g.count(ctx, s)
		if err != nil {
			return nil, 0, err
		}
		g.counted, g.took = time.Now(), time.Since(began)
		if w == nil {
			continue
		}
		full := fmt.Errorf("%w: the queue has %d messages, WithCapacity allows %d", errNoRoom, g.used, g.Max)
		g.full.Store(&full)
		if wait == nil {
			// One Wait for all Puts of the value, because one request sends all of them.
			wait = s.StartWait("put", g.Dir, func(context.Context) error { return cmp.Or(g.Waiting(), errNoRoom) })
		}
		if err := znode.AwaitEvent(ctx, s, w); err != nil {
			return nil, 0, err
		}
		round = 0
	}
	// Clear the reason here, and not when the wait ends: if all callers give up at one
	// moment, the last ones must still find it.
	g.full.Store(nil)
	return []any{&zk.SetDataRequest{Path: g.Path, Data: []byte{}, Version: g.version}}, g.Max - g.used, nil
}

// count counts the messages. If there is no room, it returns a watch that fires when
// there may be room.
func (g *Capacity) count(ctx context.Context, s *session.Session) (*session.Watch, error) {
	g.known = false
	// Read the version before the messages are counted: a Put in between changes the
	// version, and the server refuses a request that relies on the old count.
	ok, stat, err := s.Exists(ctx, g.Path)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, g.createZnode(ctx, s)
	}
	ok, dir, err := s.Exists(ctx, g.Dir)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, g.MakeDir(ctx, s, g.Dir)
	}
	// NumChildren is an upper bound, which costs no listing while the queue is not nearly
	// full.
	g.version, g.used = stat.Version, int(dir.NumChildren)
	if g.used < g.Max {
		g.known = true
		return nil, nil
	}
	// NumChildren also counts children that are not messages: count the messages exactly.
	names, _, w, err := s.WatchChildren(ctx, g.Dir)
	if session.ClassOf(err) == session.ClassNoNode {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	g.used, g.known = 0, true
	for _, name := range names {
		if _, ok := g.NumberOf(name); ok {
			g.used++
		}
	}
	g.OnCount(g.used)
	if g.used < g.Max {
		w.Stop()
		return nil, nil
	}
	return w, nil
}

func (g *Capacity) createZnode(ctx context.Context, s *session.Session) error {
	_, err := s.Create(ctx, g.Path, []byte{}, zk.FlagPersistent)
	switch session.ClassOf(err) {
	case session.ClassNoNode:
		return g.MakeDir(ctx, s, g.Dir)
	case session.ClassNodeExists, session.ClassConnectionLost:
		return nil // after a lost answer, the next count looks whether the znode exists
	}
	return err
}

func (g *Capacity) Passed(n int) {
	// Our own writes raise the version by one each. If another producer has written, the
	// next request is refused and the messages are counted again.
	g.used += n
	g.version++
	g.refused.Store(0)
	// Here, and not before a request: a request that has filled the queue may be repeated.
	g.known = g.known && time.Since(g.counted) < max(maxCountAge, 10*g.took)
}

func (g *Capacity) Refused(err error) error {
	g.known = false
	switch session.ClassOf(err) {
	case session.ClassBadVersion:
		g.refused.Add(1)
		return nil
	case session.ClassNoNode:
		return nil
	}
	return err
}
