package interop

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
)

// rwLock is a lock of another client, for readers and for writers.
type rwLock struct {
	in          *language
	read, write string // kinds
	rArgs       []string
	wArgs       []string
	opts        []zksync.RWMutexOption // options that our RWMutex needs
}

var (
	curatorRW   = rwLock{in: java, read: "curator-rwlock", write: "curator-rwlock"}
	kazooRWTold = rwLock{in: python, read: "kazoo-readlock", write: "kazoo-writelock", rArgs: []string{"__WRIT__"}, wArgs: []string{"__WRIT__", "__READ__"}}
	kazooRW     = rwLock{in: python, read: "kazoo-readlock", write: "kazoo-writelock", opts: []zksync.RWMutexOption{zksync.WithLayout(zksync.LayoutKazoo)}}
)

// An rwPeer is an rwLock in a peer. Curator has both halves in one object.
type rwPeer struct {
	reader, writer *handle
	prefix         string // prefix of the methods for readers
}

func (l rwLock) make(t *testing.T, srv servers.Server, path string) rwPeer {
	t.Helper()
	c := l.in.peer(t).connect(t, srv.Address(), alive)
	if l.read == l.write {
		return rwPeer{c.make(t, l.read, path), c.make(t, l.write, path), "r-"}
	}
	return rwPeer{c.make(t, l.read, path, l.rArgs...), c.make(t, l.write, path, l.wArgs...), ""}
}

// An RWMutex excludes with Curator's InterProcessReadWriteLock, and with kazoo's ReadLock and WriteLock.
func TestRWMutex(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]rwLock{"Curator": curatorRW, "kazoo with patterns": kazooRWTold, "kazoo by LayoutKazoo": kazooRW} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			both(t, func(t *testing.T, srv servers.Server) {
				path := servers.Path(t)
				lasting(t, srv, path)
				m := srv.Connect(t)
				mu := zksync.NewRWMutex(m, path, kind.opts...)
				theirs := kind.make(t, srv, path)
				try := func(want bool, h *handle, prefix string) {
					t.Helper()
					patience := map[bool]string{true: "10000", false: "200"}[want]
					h.want(t, strconv.FormatBool(want), prefix+"try", patience)
				}

				must(t, mu.RLock(t.Context())) // readers share the lock
				try(true, theirs.reader, theirs.prefix)
				try(false, theirs.writer, "")
				must(t, mu.RUnlock())
				if ok, err := mu.TryLock(t.Context()); ok || err != nil {
					t.Errorf("TryLock beside their reader: %v, %v", ok, err)
				}
				if ok, err := mu.TryRLock(t.Context()); !ok || err != nil {
					t.Errorf("TryRLock beside their reader: %v, %v", ok, err)
				}
				must(t, mu.RUnlock())
				theirs.reader.call(t, theirs.prefix+"release")

				must(t, mu.Lock(t.Context())) // a writer excludes all others
				try(false, theirs.reader, theirs.prefix)
				try(false, theirs.writer, "")
				must(t, mu.Unlock())
				try(true, theirs.writer, "")
				if ok, err := mu.TryRLock(t.Context()); ok || err != nil {
					t.Errorf("TryRLock beside their writer: %v, %v", ok, err)
				}
				if ok, err := mu.TryLock(t.Context()); ok || err != nil {
					t.Errorf("TryLock beside their writer: %v, %v", ok, err)
				}
				theirs.writer.call(t, "release")
				awaitChildren(t, live(t, m), path, 0)
			})
		})
	}
}

// A reader does not overtake a writer that waits, also where the two are clients in different languages.
func TestRWMutexLine(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, srv servers.Server) {
		path := servers.Path(t)
		m := srv.Connect(t)
		s := live(t, m)
		lasting(t, srv, path)
		theirs, late := curatorRW.make(t, srv, path), curatorRW.make(t, srv, path)
		mu, second := zksync.NewRWMutex(m, path), zksync.NewRWMutex(m, path)

		must(t, mu.RLock(t.Context()))
		writer := theirs.writer.start("acquire")
		awaitChildren(t, s, path, 2)
		reader := start(func() error { return second.RLock(t.Context()) })
		awaitChildren(t, s, path, 3)
		unanswered(t, "a writer behind our reader", writer)
		must(t, mu.RUnlock())
		answered(t, "acquire", writer)
		waiting(t, "RLock behind their writer", reader)
		theirs.writer.call(t, "release")
		ended(t, "RLock", reader)

		ourWriter := start(func() error { return mu.Lock(t.Context()) })
		awaitChildren(t, s, path, 2)
		theirReader := late.reader.start("r-acquire")
		awaitChildren(t, s, path, 3)
		waiting(t, "Lock behind our reader", ourWriter)
		must(t, second.RUnlock())
		ended(t, "Lock", ourWriter)
		unanswered(t, "a reader behind our writer", theirReader)
		must(t, mu.Unlock())
		answered(t, "r-acquire", theirReader)
		late.reader.call(t, "r-release")
	})
}

// A writer that downgrades still reads, other readers get the lock, and writers of every client
// wait.
func TestDowngrade(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, srv servers.Server) {
		path := servers.Path(t)
		lasting(t, srv, path)
		m := srv.Connect(t)
		s := live(t, m)
		mu, second := zksync.NewRWMutex(m, path), zksync.NewRWMutex(m, path)
		theirs, late := curatorRW.make(t, srv, path), curatorRW.make(t, srv, path)

		must(t, mu.Lock(t.Context())) // ours
		reader := theirs.reader.start("r-acquire")
		awaitChildren(t, s, path, 2)
		writer := late.writer.start("acquire")
		awaitChildren(t, s, path, 3)
		must(t, mu.Downgrade(t.Context()))
		answered(t, "r-acquire beside a downgraded lock", reader)
		theirs.reader.call(t, "r-release")
		awaitChildren(t, s, path, 2)
		unanswered(t, "a writer behind a downgraded lock", writer)
		must(t, mu.RUnlock())
		answered(t, "acquire", writer)

		ourReader := start(func() error { return second.RLock(t.Context()) }) // theirs
		awaitChildren(t, s, path, 2)
		// An object of Curator belongs to one thread, and only this thread may downgrade.
		late.writer.call(t, "r-acquire")
		late.writer.call(t, "release")
		ended(t, "RLock beside a downgraded lock", ourReader)
		must(t, second.RUnlock())
		ourWriter := start(func() error { return mu.Lock(t.Context()) })
		awaitChildren(t, s, path, 2)
		theirs.writer.want(t, "false", "try", "200")
		waiting(t, "Lock behind a downgraded lock", ourWriter)
		late.writer.call(t, "r-release")
		ended(t, "Lock", ourWriter)
		must(t, mu.Unlock())
	})
}

// Curator's InterProcessReadWriteLock 5.4 lets a waiting writer in beside a reader that has downgraded. The test
// documents this fault of Curator, without a contender of ours: a contender that downgrades becomes a reader at the end
// of the line.
func TestCuratorsDowngradeLetsWritersIn(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, srv servers.Server) {
		path := servers.Path(t)
		s := live(t, srv.Connect(t))
		lasting(t, srv, path)
		first, second := curatorRW.make(t, srv, path), curatorRW.make(t, srv, path)
		first.writer.call(t, "acquire")
		writer := second.writer.start("acquire")
		awaitChildren(t, s, path, 2)
		first.writer.call(t, "r-acquire")
		first.writer.call(t, "release")
		answered(t, "acquire beside a reader", writer)
		first.writer.call(t, "r-release")
		second.writer.call(t, "release")
	})
}

// Readers and writers of both languages that contend for one lock never hold it beside a writer.
func TestReadersAndWriters(t *testing.T) {
	t.Parallel()
	const n = 100
	both(t, func(t *testing.T, srv servers.Server) {
		path := servers.Path(t)
		w := newWitness(t)
		theirs := curatorRW.make(t, srv, path)
		writes := theirs.writer.start("contend", strconv.Itoa(n), w.dir, "Curator", "0")
		reads := theirs.reader.start("r-contend", strconv.Itoa(n), w.dir, "Curator")
		var wg sync.WaitGroup
		do := func(m *session.Manager, run func(*zksync.RWMutex) error) {
			mu := zksync.NewRWMutex(m, path)
			wg.Go(func() {
				for range n {
					if err := run(mu); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		mine := witness{w.dir, "zksync"}
		do(srv.Connect(t), func(mu *zksync.RWMutex) error {
			return mu.Do(t.Context(), func(context.Context) error { return errors.Join(mine.enter(), mine.exit()) })
		})
		do(srv.Connect(t), func(mu *zksync.RWMutex) error {
			return mu.RDo(t.Context(), func(context.Context) error {
				if _, err := os.Stat(w.file("held")); !errors.Is(err, fs.ErrNotExist) {
					return errors.New("OVERLAP: we read while somebody writes")
				}
				return nil
			})
		})
		wg.Wait()
		answered(t, "contend", writes)
		answered(t, "r-contend", reads)
		w.check(t, 2*n)
	})
}

// A ReadLock of kazoo 2.8 and a writer that came later can wait for each other for ever: the
// ReadLock waits for later writers, and these writers wait for the ReadLock. The test documents
// this fault of kazoo, without a contender of ours.
func TestKazooReadersWaitForLaterWriters(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, srv servers.Server) {
		path := servers.Path(t)
		lasting(t, srv, path)
		s := live(t, srv.Connect(t))
		first, second := kazooRW.make(t, srv, path), kazooRW.make(t, srv, path)
		first.writer.call(t, "acquire")
		reader := first.reader.start("try", "2000")
		awaitChildren(t, s, path, 2)
		writer := second.writer.start("acquire")
		awaitChildren(t, s, path, 3)
		first.writer.call(t, "release")
		if got := answered(t, "try", reader); got != "false" {
			t.Errorf("the reader that is first in line: %s", got)
		}
		answered(t, "acquire", writer) // because the reader has given up
		second.writer.call(t, "release")
	})
}

// start runs a blocking call in the background.
func start(run func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- run() }()
	return done
}

func waiting(t testing.TB, what string, done <-chan error) {
	t.Helper()
	select {
	case err := <-done:
		t.Fatalf("%s did not wait: %v", what, err)
	default:
	}
}

func ended(t testing.TB, what string, done <-chan error) {
	t.Helper()
	select {
	case err := <-done:
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	case <-time.After(answerTime):
		t.Fatalf("%s: not within %v", what, answerTime)
	}
}
