package queue

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// idlePrefix begins the names of the contenders in the line of idle consumers.
const idlePrefix = "idle-"

// An idleLine is the position of one consumer in the line of idle consumers. Only the
// first in line watches the queue, so that a message wakes one consumer and not all. Each
// of the others watches the contender before it. The claim of a consumer deletes its
// contender in the same transaction, and so wakes the next one.
type idleLine struct {
	v    *view
	path string // of the contender; empty if this consumer is not in line
}

// wait waits until this consumer should look for messages: it is alone, or the contender
// before it has gone. Two consumers may do so at the same time; the order znode decides
// which of them gets a message.
func (l *idleLine) wait(ctx context.Context) error {
	v := l.v
	st, err := v.order.current(ctx)
	// A consumer that is in line already has had its turn, and its claim was refused. A
	// consumer that skips a message would keep it from the consumers behind it, so that it
	// does not join.
	if err != nil || st.consumers <= 1 || l.path != "" || v.partitions.skips() {
		return err
	}
	seq, err := l.join(ctx)
	if session.ClassOf(err) == session.ClassNoAuth {
		return nil // without the permission to join, it acts as the first in line
	}
	if err != nil || seq <= 0 {
		return err
	}
	// The name before ours belongs to the consumer that joined before. If it has gone
	// already, this consumer acts as the first in line, which is never wrong.
	before := znode.Join(v.c.cfg.child(idleName), fmt.Sprintf("%s%0*d", idlePrefix, numberDigits, seq-1))
	there, _, w, err := v.s.WatchExists(ctx, before)
	if err != nil {
		return err
	}
	if !there {
		w.Stop()
		return nil
	}
	return znode.AwaitEvent(ctx, v.s, w)
}

// join creates a contender, and returns its number.
func (l *idleLine) join(ctx context.Context) (int32, error) {
	v := l.v
	dir := v.c.cfg.child(idleName)
	id := []byte(znode.NewGUID())
	for round := 0; ; round++ {
		if err := v.s.Pause(ctx, round-1); err != nil {
			return 0, err
		}
		path, err := v.s.Create(ctx, znode.Join(dir, idlePrefix), id, zk.FlagEphemeral|zk.FlagSequence)
		switch class := session.ClassOf(err); {
		case class == session.ClassNoNode:
			err = v.c.cfg.MakeDir(ctx, v.s, dir)
		case class == session.ClassConnectionLost:
			// A contender that no consumer knows would hold up the line as long as the session.
			if path, err = l.find(ctx, dir, id); path == "" && err == nil {
				continue
			}
		}
		if session.ClassOf(err) == session.ClassCancelled {
			// The request may have been sent before ctx ended.
			if path, _ := l.find(v.c.cleanupCtx, dir, id); path != "" {
				v.s.Discard(path)
			}
		}
		if err != nil {
			return 0, err
		}
		if path != "" {
			l.path = path
			seq, _ := znode.ParseNumber(path[len(path)-min(len(path), numberDigits):])
			return seq, nil
		}
	}
}

// find returns the path of the contender with the given data.
func (l *idleLine) find(ctx context.Context, dir string, id []byte) (string, error) {
	v := l.v
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

// leaveOps returns the operations that delete the contender.
func (l *idleLine) leaveOps() []any {
	if l.path == "" {
		return nil
	}
	return []any{&zk.DeleteRequest{Path: l.path, Version: -1}}
}

// leave deletes the contender, in the background.
func (l *idleLine) leave() {
	if l.path != "" {
		l.v.s.Discard(l.path)
	}
	l.path = ""
}
