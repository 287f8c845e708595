package rendezvous

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A barrierView has the state of the barrier as a participant saw it last, and the
// transactions that depend on that state. One goroutine at a time uses it. Only there
// and wait may be used by others.
type barrierView struct {
	b *Barrier
	s *session.Session

	round   int64          // the czxid of the ready of the round that includes or excludes the participant, 0 if there is none
	ready   int64          // the czxid of ready, 0 if ready did not exist
	watch   *session.Watch // on ready; nil if ready must be read again
	count   int            // of the directory's children, with ready and strange children
	version int32          // of the directory
	drift   int32          // see note
	conn    uint64         // the connection that returned count and version
	there   atomic.Int32   // the number of participants that count amounts to

	wait      *participantWait // of the call under way
	patience  int              // the number of children that the next listing may have
	states    <-chan session.State
	endStates context.CancelFunc
}

// touch returns the operation that raises the version of the directory. Its result has
// the Stat of the directory.
func (v *barrierView) touch() *zk.SetDataRequest {
	return &zk.SetDataRequest{Path: v.b.path, Data: []byte{}, Version: -1}
}

// unchanged returns the operation that fails if the directory has changed.
func (v *barrierView) unchanged() *zk.CheckVersionRequest {
	return &zk.CheckVersionRequest{Path: v.b.path, Version: v.version}
}

func (v *barrierView) readyPath() string { return znode.Join(v.b.path, ReadyName) }

// transact carries out a transaction that touches the directory, and notes the Stat of the
// directory.
func (v *barrierView) transact(ops ...any) (*zk.Stat, error) {
	// Before the request, as in readDirectory.
	conn := v.s.Connection()
	results, err := v.s.Multi(background, append(ops, v.touch())...)
	if err != nil {
		return nil, err
	}
	stat := results[len(results)-1].Stat
	v.conn = conn
	v.note(stat)
	return stat, nil
}

// note notes the Stat of the directory.
//
// Each transaction of a participant creates or deletes one child and raises the version of the
// directory, so the number of such changes (the cversion) and the version grow alike. Their
// difference is the drift. It changes when a strange child comes or goes, when a participant
// crashes, and with each participant of Curator or kazoo. While the drift is the drift of the last
// listing, the count has no other strange children than that listing.
func (v *barrierView) note(stat *zk.Stat) {
	v.count, v.version, v.drift = int(stat.NumChildren), stat.Version, stat.Cversion-stat.Version
	there := v.count - v.b.strange
	if v.round != 0 {
		there-- // ready
	}
	v.there.Store(int32(max(0, there)))
}

// empty reports whether no participant has a child. Strange children raise the count of
// the directory. If all children may be strange, empty lists their names.
func (v *barrierView) empty(ctx context.Context) (bool, error) {
	// The only child is ready, or a participant of the next round. clear finds out.
	if v.count <= 1 {
		return true, nil
	}
	// Once for each tick of awaitChange at most, since the directory of a great barrier is long. The drift
	// misses strange children if another client has written to the directory as often.
	drifted := v.drift != v.b.drift && v.patience > 0
	if v.count > 1+v.b.strange && v.count > v.patience && !drifted {
		return false, nil
	}
	there, _, err := v.list(ctx)
	return err == nil && there == 0, err
}

// recount lists the participants for the error of a call, if the count may include strange
// children that no listing has shown.
func (v *barrierView) recount() {
	if v.drift == v.b.drift || v.s.Err() != nil {
		return
	}
	// The ctx of the call has ended. If no server answers in time, the error has the number that was
	// seen last.
	ctx, cancel := context.WithTimeout(background, v.grace()/2)
	defer cancel()
	_, _, _ = v.list(ctx)
}

// ask calls read until a server has an answer: the other participants count on this one, and an
// internal error of a server must not end its wait.
func (v *barrierView) ask(ctx context.Context, read func() error) error {
	return znode.ReadPatiently(ctx, v.s, v.wait.op, v.b.path, read)
}

// list counts the participants by name, and reports whether ready exists.
func (v *barrierView) list(ctx context.Context) (there int, ready bool, err error) {
	var names []string
	var stat *zk.Stat
	err = v.ask(ctx, func() (err error) {
		names, stat, err = znode.Children(ctx, v.s, v.b.path)
		return err
	})
	if err != nil {
		return 0, false, err
	}
	v.patience, v.b.strange = 0, 0
	for _, name := range names {
		switch {
		case name == ReadyName:
			ready = true
		case IsParticipant(name):
			there++
		default:
			v.b.strange++
		}
	}
	v.note(stat)
	v.b.drift = v.drift
	v.there.Store(int32(there)) // note counts ready until the round is known
	v.wait.listed(names)
	return there, ready, nil
}

// watchReady reads whether ready exists, and leaves a watch on it, if there is none.
func (v *barrierView) watchReady(ctx context.Context) error {
	if v.watch != nil {
		return nil
	}
	var ok bool
	var stat *zk.Stat
	var w *session.Watch
	if err := v.ask(ctx, func() (err error) {
		ok, stat, w, err = v.s.WatchExists(ctx, v.readyPath())
		return err
	}); err != nil {
		return err
	}
	v.watch, v.ready = w, 0
	if ok {
		v.ready = stat.Czxid
	}
	return nil
}

func (v *barrierView) unwatch() {
	v.watch.Stop()
	v.watch = nil
}

// readDirectory reads the count and the version.
func (v *barrierView) readDirectory(ctx context.Context) error {
	// Before the request: if the connection is replaced meanwhile, awaitChange makes the caller
	// read again.
	conn := v.s.Connection()
	var stat *zk.Stat
	if err := v.ask(ctx, func() (err error) {
		_, stat, err = v.s.Exists(ctx, v.b.path)
		return err
	}); err != nil {
		return err
	}
	if stat == nil {
		stat = &zk.Stat{}
	}
	v.conn = conn
	v.note(stat)
	return nil
}

// clear deletes ready if the directory has not changed. It is not an error if the
// directory has changed, or if the outcome is unknown. The documentation of DoubleBarrier
// says what happens if the directory is created again while clear is under way.
func (v *barrierView) clear() (cleared bool, err error) {
	if _, err := v.transact(v.unchanged(), &zk.DeleteRequest{Path: v.readyPath(), Version: -1}); err != nil {
		return false, unlessRaced(err, session.ClassNoNode)
	}
	return true, nil
}

// unlessRaced returns the error of open or clear, nil if another participant was faster, which
// done tells, or if the outcome is unknown.
func unlessRaced(err error, done session.Class) error {
	switch session.ClassOf(err) {
	case session.ClassBadVersion, session.ClassConnectionLost, done:
		return nil
	}
	return err
}

// pause waits before a transaction is repeated. The first repetition does not wait. The
// pauses grow while other participants are faster, or the connection breaks.
func (v *barrierView) pause(round int) error {
	if round == 0 {
		return nil
	}
	limit := time.Millisecond << min(round, 9)
	return znode.WaitUntil(background, v.s, nil, time.Now().Add(limit/2+rand.N(limit/2)))
}

// listedPerTick is the number of names that a participant may list for each tick of
// awaitChange, to find out whether they are names of participants.
const listedPerTick = 16

// grace returns the time for which a call may outlive its ctx.
func (v *barrierView) grace() time.Duration { return min(v.s.Timeout()/6, maxGrace) }

// nothing is the result of awaitChange when it is only time to read again.
const nothing zk.EventType = 0

// awaitChange waits for a change of ready. It returns nothing when the connection is
// not the connection that returned the count, and after a session timeout at most: no touch
// reports the crash of a participant.
func (v *barrierView) awaitChange(ctx context.Context) (zk.EventType, error) {
	// One subscription for all waits of the participant: a reconnect between two waits is not
	// missed.
	if v.states == nil {
		var states context.Context
		states, v.endStates = context.WithCancel(context.Background())
		v.states = v.b.m.States(states)
	}
	v.wait.start(v.round != 0)
	period := v.s.Timeout()
	tick := time.After(period/2 + rand.N(period/2))
	for {
		select {
		case ev := <-v.watch.Events():
			v.watch = nil
			return ev.Type, nil // if the session has ended, the next read says so
		case _, ok := <-v.states:
			if !ok {
				return nothing, znode.LossOf(session.ErrClosed)
			}
			// The first state of the subscription is the present one. Only another connection is a
			// reason to read again.
			if conn := v.s.Connection(); conn != 0 && conn != v.conn {
				return nothing, nil
			}
		case <-tick:
			v.patience += listedPerTick
			return nothing, nil
		case <-v.s.Done():
			return nothing, znode.LossOf(v.s.Err())
		case <-ctx.Done():
			v.recount()
			return nothing, v.wait.cancelled(ctx)
		}
	}
}
