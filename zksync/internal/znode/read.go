package znode

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
)

// MaxRelisted is the length up to which a directory is listed again only for a log line
// or an error. Thousands of waiting contenders must not list thousands of names each.
const MaxRelisted = 64

// maxReads is how many reads of ReadAll are under way at once.
const maxReads = 256

// A Node is a znode that was read.
type Node struct {
	Name string
	Data []byte
	Stat *zk.Stat
}

// Children returns the names of the children of dir, and its Stat. Without dir, it returns no names
// and an empty Stat.
func Children(ctx context.Context, s *session.Session, dir string) ([]string, *zk.Stat, error) {
	names, stat, err := s.Children(ctx, dir)
	if session.ClassOf(err) == session.ClassNoNode {
		return nil, &zk.Stat{}, nil
	}
	return names, stat, err
}

// ReadAll reads the children of dir that have the given names, and returns the children
// that still exist, in the order of names.
func ReadAll(ctx context.Context, s *session.Session, dir string, names []string) ([]Node, error) {
	return FindAll(dir, names, func(path string) ([]byte, *zk.Stat, error) { return s.Get(ctx, path) })
}

// StatAll is ReadAll without the data, for which no permission to read is needed.
func StatAll(ctx context.Context, s *session.Session, dir string, names []string) ([]Node, error) {
	return FindAll(dir, names, func(path string) ([]byte, *zk.Stat, error) {
		_, stat, err := s.Exists(ctx, path)
		return nil, stat, err
	})
}

// FindAll calls find for the children of dir that have the given names, and returns the children that
// have a Stat. It fails if find fails for a reason other than the end of a znode.
func FindAll(dir string, names []string, find func(path string) ([]byte, *zk.Stat, error)) ([]Node, error) {
	all := make([]Node, len(names))
	errs := make([]error, len(names))
	slots := make(chan struct{}, maxReads)
	var wg sync.WaitGroup
	for i, name := range names {
		// Before the goroutine is started: a line of thousands must not become thousands of
		// goroutines.
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			data, stat, err := find(Join(dir, name))
			if err == nil {
				all[i] = Node{name, data, stat}
			} else if session.ClassOf(err) != session.ClassNoNode {
				errs[i] = err
			}
		})
	}
	wg.Wait()
	found := all[:0]
	for _, z := range all {
		if z.Stat != nil {
			found = append(found, z)
		}
	}
	return found, errors.Join(errs...)
}

// MaxListings bounds ListWhole: in a busy directory some znode may go after each listing.
const MaxListings = 5

// ListWhole calls list again while list has read fewer znodes than it has listed, so that
// the result is a state that existed. In a busy directory ListWhole gives up after a few
// calls, and returns the last result.
func ListWhole[T any](ctx context.Context, s *session.Session, list func() (found T, whole bool, err error)) (T, error) {
	for round := 0; ; round++ {
		found, whole, err := list()
		if whole || err != nil || round == MaxListings-1 {
			return found, err
		}
		if err := s.Pause(ctx, round); err != nil {
			return found, err
		}
	}
}

// ReadCommitted calls read behind a commit (see session.Session.SyncQuorum), so that read
// sees every transaction that was committed before the call. It is repeated over lost
// connections and sessions until ctx ends.
func ReadCommitted[T any](ctx context.Context, m *session.Manager, path string, read func(context.Context, *session.Session) (T, error)) (found T, err error) {
	err = m.Do(ctx, func(ctx context.Context, s *session.Session) error {
		if err := s.SyncQuorum(ctx, path); err != nil {
			return err
		}
		var err error
		found, err = read(ctx, s)
		return err
	})
	return found, err
}

// IsSession reports whether the owner of a znode is a session. The server marks
// containers and znodes with a time to live by owners that are no sessions.
func IsSession(owner int64) bool {
	return owner != 0 && uint64(owner) != 1<<63 && uint64(owner)>>56 != 0xff
}

// WatchData reads a znode and watches it. If its data are too large for an answer, it returns no
// data. Like Session.WatchData, and unlike exists, it leaves no watch on a znode that does not
// exist.
func WatchData(ctx context.Context, s *session.Session, path string) ([]byte, *zk.Stat, *session.Watch, error) {
	data, stat, w, err := s.WatchData(ctx, path)
	if session.IsAnswerTooLarge(err) {
		return WatchStat(ctx, s, path)
	}
	return data, stat, w, err
}

// WatchStat is WatchData for a znode whose data are too large: each answer above the limit ends the
// connection. It returns no data.
func WatchStat(ctx context.Context, s *session.Session, path string) ([]byte, *zk.Stat, *session.Watch, error) {
	ok, stat, w, err := s.WatchExists(ctx, path)
	if err == nil && !ok {
		w.Stop()
		return nil, nil, nil, zk.ErrNoNode
	}
	return nil, stat, w, err
}

// ReadPatiently calls read again while read fails by an internal error of a server, which says
// nothing about the znodes, until ctx or the session ends. op and path are for log lines and errors.
func ReadPatiently(ctx context.Context, s *session.Session, op, path string, read func() error) error {
	var wait *session.Wait
	defer func() { wait.Stop() }()
	for round := 0; ; round++ {
		err := read()
		if session.ClassOf(err) != session.ClassUnknown {
			return err
		}
		if wait == nil {
			wait = s.StartWait(op, path, func(context.Context) error {
				return fmt.Errorf("for another answer, since a server has failed: %w", err)
			})
		}
		if ended := s.Pause(ctx, round); ctx.Err() != nil {
			return wait.Cancelled(ctx)
		} else if ended != nil {
			return ended
		}
	}
}

// A Sight is a znode that exists, with a watch. If it is Blind, this client may not read the znode, and
// servers hide its events: Await lasts a second at most.
type Sight struct {
	Stat  *zk.Stat
	Watch *session.Watch
	Blind bool
}

// Await waits until it is time to look again, and stops the watch. It reports whether the znode was
// deleted. It fails when ctx or the session ends.
func (g Sight) Await(ctx context.Context, s *session.Session) (deleted bool, err error) {
	var interval <-chan time.Time
	if g.Blind {
		interval = time.After(time.Second)
	}
	ev, err := Await(ctx, s, g.Watch, interval)
	return ev == zk.EventNodeDeleted, err
}

// WatchPresent watches a znode by ReadPatiently. It fails with NoNode if the znode does not exist.
func WatchPresent(ctx context.Context, s *session.Session, op, path string) (g Sight, err error) {
	err = ReadPatiently(ctx, s, op, path, func() (err error) {
		_, g.Stat, g.Watch, err = WatchData(ctx, s, path)
		if g.Blind = session.ClassOf(err) == session.ClassNoAuth; g.Blind {
			// A server before 3.9 tells every client that a znode exists.
			_, g.Stat, g.Watch, err = WatchStat(ctx, s, path)
		}
		return err
	})
	return g, err
}

// AwaitEvent waits until a watch fires, and stops the watch. It fails when ctx or the
// session ends.
func AwaitEvent(ctx context.Context, s *session.Session, w *session.Watch) error {
	_, err := Await(ctx, s, w, nil)
	return err
}

// Await is AwaitEvent that returns the event, or 0 if it is over before. The event may be the
// end of the session: the caller's next request reports that.
func Await(ctx context.Context, s *session.Session, w *session.Watch, over <-chan time.Time) (zk.EventType, error) {
	defer w.Stop()
	select {
	case ev := <-w.Events():
		return ev.Type, nil
	case <-over:
		return 0, nil
	case <-s.Done():
		return 0, s.Err()
	case <-ctx.Done():
		return 0, session.Cancelled(ctx)
	}
}

// AwaitClosed waits until a channel is closed. It fails if ctx ends first.
func AwaitClosed(ctx context.Context, closed <-chan struct{}) error {
	select {
	case <-closed:
		return nil
	case <-ctx.Done():
		return session.Cancelled(ctx)
	}
}

// AwaitRemoval waits until the removals of znodes have ended. The channels are results of
// Session.Discard. It fails if ctx ends first, or with a refusal of the server.
func AwaitRemoval(ctx context.Context, all ...<-chan error) (refused error) {
	for _, gone := range all {
		select {
		case err := <-gone:
			if err != nil {
				refused = fmt.Errorf("a znode stays, since it could not be removed: %w", err)
			}
		case <-ctx.Done():
			return session.Cancelled(ctx)
		}
	}
	return refused
}

// WaitUntil waits until notified is closed, or until a time, if it is not zero.
func WaitUntil(ctx context.Context, s *session.Session, notified <-chan struct{}, until time.Time) error {
	var due <-chan time.Time
	if !until.IsZero() {
		d := time.Until(until)
		if d <= 0 {
			// A timer of zero has brought the runtime down in a bubble of synctest.
			return nil
		}
		due = time.After(d)
	}
	select {
	case <-notified:
		return nil
	case <-due:
		return nil
	case <-s.Done():
		return LossOf(s.Err())
	case <-ctx.Done():
		return session.Cancelled(ctx)
	}
}
