package queue

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// idlePrefix begins the names of the contenders in the line of idle consumers.
const idlePrefix = "idle-"

// An idleLine is the position of one consumer in the line of consumers that wait. Only
// the first idle consumer watches the queue, so that a message wakes one consumer and not
// all. Consumers whose claims, give-backs and Takes are refused because others are faster take turns
// in the line, and consumers that are not refused look at it from time to time.
// Each but the first watches the contender before it. The claim of a consumer deletes its
// contender in the same transaction, and so wakes the next one.
type idleLine struct {
	v    *view
	path string // of the contender; empty if this consumer is not in line
	seq  int32  // its number
	turn bool   // this consumer has had its turn, as the first in line
	rnd  *rand.Rand
}

func newIdleLine(v *view) *idleLine {
	// A simulation can be run again: the random times depend on the session alone.
	return &idleLine{v: v, rnd: rand.New(rand.NewPCG(uint64(v.s.ID()), 0))}
}

// wait waits until this idle consumer should look for messages: it is alone, or the
// contender before it has gone. Two consumers may do so at the same time; the order znode
// decides which of them gets a message.
func (l *idleLine) wait(ctx context.Context) error {
	if l.leaveToSkip() {
		return nil
	}
	st, err := l.v.order.current(ctx)
	if err != nil || st.consumers <= 1 {
		return err
	}
	_, err = l.waitTurn(ctx, 0)
	return err
}

// waitTurn waits until the contender before this consumer has gone, or for a limit if it is
// not 0. It reports false if there was nobody to wait for.
func (l *idleLine) waitTurn(ctx context.Context, limit time.Duration) (waited bool, err error) {
	v := l.v
	// A consumer that has had its turn, and whose claim was refused, acts as the first in line.
	if l.turn {
		return false, nil
	}
	if l.path == "" {
		err := l.join(ctx)
		switch session.ClassOf(err) {
		case session.ClassOK:
		case session.ClassNoAuth, session.ClassNodeExists:
			// Without the permission to join or to list the line, or if another client's znode has the next number, it
			// acts as the first in line.
			return false, nil
		default:
			return false, err
		}
	}
	// The name before ours belongs to the consumer that joined before. If it has gone
	// already, or there was none, this consumer acts as the first in line, which is never wrong.
	before := znode.Join(v.cfg.child(idleName), fmt.Sprintf("%s%0*d", idlePrefix, numberDigits, l.seq-1))
	there, _, w, err := v.s.WatchExists(ctx, before)
	if err != nil {
		return false, err
	}
	if !there {
		w.Stop()
		l.turn = true
		return false, nil
	}
	// The limit is for this wait alone: far from the servers, each request may take longer.
	limited := ctx
	if limit > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	err = znode.AwaitEvent(limited, v.s, w)
	l.turn = err == nil
	if session.ClassOf(err) == session.ClassCancelled && ctx.Err() == nil {
		err = nil
	}
	return true, err
}

// tryTurn is waitTurn for a consumer whose claim was refused after a time. It has a limit: a
// consumer at the front of the line may be frozen.
func (l *idleLine) tryTurn(ctx context.Context, took time.Duration) (waited bool, err error) {
	if l.leaveToSkip() {
		return false, nil
	}
	// A consumer that is not frozen learns of its turn, reads the order znode and claims.
	waited, err = l.waitTurn(ctx, max(maxTurn, 4*took))
	if waited {
		// The consumer before this one has claimed messages.
		l.v.order.forget(l.v.order.known())
	}
	return waited, err
}

// othersWait reports whether other consumers are in line. A consumer that is never refused learns of
// consumers farther from the servers in no other way.
func (l *idleLine) othersWait(ctx context.Context) bool {
	there, stat, err := l.v.s.Exists(ctx, l.v.cfg.child(idleName))
	return err == nil && there && stat.NumChildren > l.v.inLine.Load()
}

// nextTurn takes a turn after a write of the order znode, or a read that relies on it, was refused
// again, whose answer took a time. A consumer that has had its turn goes to the end of the line. The
// caller reads the state afterwards.
func (l *idleLine) nextTurn(ctx context.Context, took time.Duration) error {
	if l.turn {
		l.leave()
	}
	// Another contender of this consumer has its position, and may wait for the outcome.
	if l.path != "" || l.v.inLine.Load() == 0 {
		if _, err := l.tryTurn(ctx, took); err != nil {
			return err
		}
	}
	// Others need not be in line. Without a random time, two consumers whose requests take the same
	// time might keep their order for ever.
	most := min(2*max(took, leastTrip), maxPause)
	return znode.WaitUntil(ctx, l.v.s, nil, time.Now().Add(time.Duration(l.rnd.Int64N(int64(most)))))
}

// leaveToSkip leaves the line if this consumer skips a message, which it would keep from the
// consumers behind it. It reports whether this is so.
func (l *idleLine) leaveToSkip() bool {
	skips := l.v.partitions.skips()
	if skips {
		l.leave()
	}
	return skips
}

// join creates a contender.
func (l *idleLine) join(ctx context.Context) error {
	v := l.v
	dir := v.cfg.child(idleName)
	id := []byte(znode.NewGUID())
	var path string
	var unclear error // why the contender may exist
	create := func() (err error) {
		if unclear == nil {
			// The check needs the permission to list the directory, and without that no look could find the
			// contender after a lost answer.
			var results []zk.MultiResponse
			results, err = v.s.Multi(ctx, &zk.CheckVersionRequest{Path: dir, Version: -1},
				&zk.CreateRequest{Path: znode.Join(dir, idlePrefix), Data: id, Flags: zk.FlagEphemeral | zk.FlagSequence})
			switch session.ClassOf(err) {
			case session.ClassOK:
				path = results[1].String
				return nil
			case session.ClassNoNode:
				return v.cfg.MakeDir(ctx, v.s, dir)
			case session.ClassConnectionLost, session.ClassUnknown, session.ClassTransient, session.ClassCancelled:
				unclear = err
			default:
				return err
			}
		}
		// Never two at a time: a server may fail for long.
		if path, err = l.find(ctx, dir, id); err == nil && path == "" {
			err, unclear = unclear, nil
		}
		return err
	}
	defer func() {
		if path == "" && unclear != nil {
			go l.discard(context.WithoutCancel(ctx), dir, id) // Close does not wait for this
		}
	}()
	for round := 0; path == ""; round++ {
		if err := v.s.Pause(ctx, round-1); err != nil {
			return err
		}
		err := znode.ReadPatiently(ctx, v.s, "consume", v.cfg.Path, create)
		if class := session.ClassOf(err); err != nil && class != session.ClassConnectionLost && class != session.ClassTransient {
			return err
		}
	}
	seq, _ := znode.ParseNumber(strings.TrimPrefix(path, znode.Join(dir, idlePrefix)))
	if !znode.Countable(seq) {
		return l.restart(ctx, path, dir)
	}
	l.path, l.seq = path, seq
	v.inLine.Add(1)
	return nil
}

// restart deletes a contender that got no number, since the counter of the directory is spent, and with the
// last contender the directory: the next one begins at 0. It fails with NodeExists.
func (l *idleLine) restart(ctx context.Context, path, dir string) error {
	if _, err := l.v.s.Multi(ctx, &zk.DeleteRequest{Path: path, Version: -1}, &zk.DeleteRequest{Path: dir, Version: -1}); err != nil {
		l.v.s.Discard(path)
	}
	return zk.ErrNodeExists
}

// discard deletes the contender with the given data if it exists: a contender that no consumer
// knows would hold up the line as long as the session. It ends with the session.
func (l *idleLine) discard(ctx context.Context, dir string, id []byte) {
	for round := 0; ; round++ {
		path, err := l.find(ctx, dir, id)
		if path != "" {
			l.v.s.Discard(path)
			return
		}
		// Without the permission to read, the contender cannot be found.
		if err == nil || !session.ClassOf(err).Again() && session.ClassOf(err) != session.ClassUnknown {
			return
		}
		if l.v.s.Pause(ctx, round) != nil {
			return
		}
	}
}

// find returns the path of the contender with the given data.
func (l *idleLine) find(ctx context.Context, dir string, id []byte) (string, error) {
	v := l.v
	// An absence counts only behind a commit. Otherwise the contender may appear later, and hold
	// up the line.
	if err := v.s.SyncQuorum(ctx, dir); err != nil {
		return "", err
	}
	names, _, err := v.s.Children(ctx, dir)
	if session.ClassOf(err) == session.ClassNoNode {
		return "", nil // the request was lost, and would have found no directory
	}
	if err != nil {
		return "", err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, idlePrefix) })
	found, err := znode.ReadAll(ctx, v.s, dir, names)
	for _, z := range found {
		if string(z.Data) == string(id) {
			return znode.Join(dir, z.Name), nil
		}
	}
	return "", err
}

// leave deletes the contender, in the background.
func (l *idleLine) leave() {
	if l.path != "" {
		l.v.s.Discard(l.path)
	}
	l.left()
}

// left notes that the contender was deleted.
func (l *idleLine) left() {
	if l.path != "" {
		l.v.inLine.Add(-1)
	}
	l.path, l.turn = "", false
}
