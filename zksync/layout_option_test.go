package zksync_test

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

var asKazoo = zksync.WithLayout(zksync.LayoutKazoo)

// guid matches the GUID that protects a create, in every layout.
const guid = `^_c_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}-`

// Each layout names its znodes as its client does. kazoo looks for its mark and ten digits at the end of a name,
// wherever the name begins.
func TestLayoutNames(t *testing.T) {
	writes := func(name string, opts ...zksync.RWMutexOption) func(*testing.T, *zksynctest.Server) {
		return func(t *testing.T, srv *zksynctest.Server) {
			rw := zksync.NewRWMutex(srv.Connect(t), path, opts...)
			must(t, rw.Lock(t.Context()))
			wantNames(t, srv, regexp.MustCompile(guid+name+`0000000000$`))
		}
	}
	elects := func(name string, opts ...zksync.ElectionOption) func(*testing.T, *zksynctest.Server) {
		return func(t *testing.T, srv *zksynctest.Server) {
			campaign(t, zksync.NewElection(srv.Connect(t), path, opts...))
			synctest.Wait()
			wantNames(t, srv, regexp.MustCompile(guid+name+`0000000000$`))
		}
	}
	for name, test := range map[string]func(t *testing.T, srv *zksynctest.Server){
		"Mutex": func(t *testing.T, srv *zksynctest.Server) {
			lock(t, zksync.NewMutex(srv.Connect(t), path, asKazoo))
			wantNames(t, srv, regexp.MustCompile(guid+`__lock__0000000000$`))
		},
		"RWMutex":        writes("__lock__", asKazoo),
		"RWMutex itself": writes("__WRIT__", zksync.WithLayout(zksync.LayoutCurator)),
		"readers": func(t *testing.T, srv *zksynctest.Server) {
			rw := zksync.NewRWMutex(srv.Connect(t), path, asKazoo)
			must(t, rw.RLock(t.Context()))
			wantNames(t, srv, regexp.MustCompile(guid+`__rlock__0000000000$`))
		},
		"downgraded": func(t *testing.T, srv *zksynctest.Server) {
			rw := zksync.NewRWMutex(srv.Connect(t), path, asKazoo)
			must(t, rw.Lock(t.Context()))
			must(t, rw.Downgrade(t.Context()))
			wantNames(t, srv, regexp.MustCompile(guid+`__rlock__0000000000$`))
		},
		"Election":        elects("__lock__", asKazoo),
		"Election itself": elects("latch-"),
		"LeaderSelector":  elects("lock-", zksync.WithLayout(zksync.LayoutLeaderSelector)),
		"Semaphore": func(t *testing.T, srv *zksynctest.Server) {
			s := zksync.NewSemaphore(srv.Connect(t), path, 3, asKazoo)
			must(t, s.Acquire(t.Context(), 2))
			wantNames(t, srv, regexp.MustCompile(guid+`lease-0000000000$`), regexp.MustCompile(guid+`lease-0000000001$`))
			waiting := start(func() error { return s.Acquire(t.Context(), 2) })
			pending(t, "Acquire", waiting)
			if names, _ := srv.Children(path + "-__lock__"); len(names) != 1 || !regexp.MustCompile(guid+`__lock__0000000001$`).MatchString(names[0]) {
				t.Errorf("beside it: %q", names)
			}
			must(t, s.Release(2))
			must(t, <-waiting)
			if data, ok := srv.Get(path); string(data) != "3" || !ok {
				t.Errorf("the size is told as %q, %v", data, ok)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, test)
		})
	}
}

// Mutexes with different layouts on one path exclude each other, and take turns in the order of their arrival.
func TestLayoutsOfALockMix(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		ours, theirs := zksync.NewMutex(srv.Connect(t), path), zksync.NewMutex(srv.Connect(t), path, asKazoo)
		for range 3 {
			lock(t, ours)
			second := locking(t.Context(), theirs)
			last := zksync.NewMutex(srv.Connect(t), path)
			third := locking(t.Context(), last)
			pending(t, "Lock beside the other layout", second)
			unlock(t, ours)
			must(t, <-second)
			pending(t, "Lock behind the other layout", third)
			unlock(t, theirs)
			must(t, <-third)
			unlock(t, last)
		}
	})
}

// RWMutexes with different layouts on one path exclude each other.
func TestLayoutsOfARWMutexMix(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		ours, theirs := zksync.NewRWMutex(srv.Connect(t), path), zksync.NewRWMutex(srv.Connect(t), path, asKazoo)
		must(t, theirs.RLock(t.Context()))
		must(t, ours.RLock(t.Context()))
		must(t, ours.RUnlock())
		writing := start(func() error { return ours.Lock(t.Context()) })
		pending(t, "Lock beside a reader of the other layout", writing)
		must(t, theirs.RUnlock())
		must(t, <-writing)
		reading := start(func() error { return theirs.RLock(t.Context()) })
		pending(t, "RLock beside a writer of the other layout", reading)
		must(t, ours.Unlock())
		must(t, <-reading)
		must(t, theirs.RUnlock())
	})
}

// An RWMutex waits for readers and writers of kazoo that are before it.
func TestForeignReadersAndWriters(t *testing.T) {
	for name, blocks := range map[string]struct{ reader, writer bool }{
		"0f8fad5bd9cb469fa16570867728950e__rlock__": {false, true},
		"0f8fad5bd9cb469fa16570867728950e__lock__":  {true, true},
		"x__unlock__": {false, false},
	} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			must(t, srv.Create("/locks", nil))
			must(t, srv.Create(path, nil))
			if _, err := live(t, srv.Connect(t)).Create(t.Context(), path+"/"+name, nil, zk.FlagEphemeralSequential); err != nil {
				t.Fatal(err)
			}
			rw := zksync.NewRWMutex(srv.Connect(t), path)
			if ok, err := rw.TryLock(t.Context()); ok == blocks.writer || err != nil {
				t.Errorf("TryLock behind %s: %v, %v", name, ok, err)
			} else if ok {
				must(t, rw.Unlock())
			}
			if ok, err := rw.TryRLock(t.Context()); ok == blocks.reader || err != nil {
				t.Errorf("TryRLock behind %s: %v, %v", name, ok, err)
			}
		})
	}
}

// With LayoutKazoo the directory stays when it is empty. Kazoo creates a directory once and then relies on it.
// LayoutCurator has containers, which the server deletes.
func TestLayoutKeepsEmptyDirectories(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		must(t, live(t, m).MakeDir(t.Context(), "/locks"))
		srv.ResetOps()
		warm(t, zksync.NewMutex(m, path, asKazoo))
		rw := zksync.NewRWMutex(m, "/locks/rw", asKazoo)
		must(t, rw.RLock(t.Context()))
		e := zksync.NewElection(m, "/locks/e", asKazoo)
		<-campaign(t, e)
		s := zksync.NewSemaphore(m, "/locks/s", 1, asKazoo)
		must(t, s.Acquire(t.Context(), 1))
		for _, op := range requests(srv) {
			if op.Code == zkserver.OpCreateContainer {
				t.Error("a container was asked for:", op)
			}
		}
		names, _ := srv.Children("/locks")
		if slices.Sort(names); !slices.Equal(names, []string{"e", "m", "rw", "s", "s-__lock__"}) {
			t.Errorf("there are %q", names)
		}
	})
}

// With a layout, too, the directories above the path are created, over lost connections.
func TestLayoutMakesDirectoriesAbove(t *testing.T) {
	for _, at := range []zksynctest.Moment{zksynctest.BeforeCommit, zksynctest.BeforeReply} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			m := srv.Connect(t)
			live(t, m)
			srv.Inject(zksynctest.Fault{Op: zkserver.OpCreate, Times: 2, At: at, Do: zksynctest.Disconnect})
			for _, path := range []string{"/a/b/c", "/a/b/d"} {
				warm(t, zksync.NewMutex(m, path, asKazoo))
				if _, ok := srv.Children(path); !ok {
					t.Error("there is no", path)
				}
				srv.Inject(zksynctest.Fault{Op: zkserver.OpCreate, At: at, Do: zksynctest.Disconnect})
			}
		})
	}
}

// Lost answers are resolved in every layout, by the GUID of the protected create.
func TestLostAnswersInLayouts(t *testing.T) {
	for _, at := range []zksynctest.Moment{zksynctest.BeforeCommit, zksynctest.AfterCommit, zksynctest.BeforeReply} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			m := srv.Connect(t)
			mu := zksync.NewMutex(m, path, asKazoo)
			warm(t, mu)
			srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, At: at, Do: zksynctest.Disconnect})
			lock(t, mu)
			wantInLine(t, srv, 1)
			unlock(t, mu)
			wantInLine(t, srv, 0)

			s := zksync.NewSemaphore(m, "/locks/s", 2, asKazoo)
			for nth := 1; nth <= 2; nth++ { // the contender, and the units
				srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Nth: nth, At: at, Do: zksynctest.Disconnect})
				must(t, s.Acquire(t.Context(), 2))
				if n := len(inLine(srv, "/locks/s")); n != 2 {
					t.Errorf("%v, multi %d: %d units are held", at, nth, n)
				}
				must(t, s.Release(2))
			}
		})
	}
}

// With LayoutKazoo a Semaphore counts every child, with any name, and does not change the data.
func TestSemaphoreInKazoosLayout(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		must(t, srv.Create("/locks", nil))
		must(t, srv.Create(path, nil)) // kazoo makes it first, and writes to it then
		m := srv.Connect(t)
		s := zksync.NewSemaphore(m, path, 2, asKazoo)
		must(t, s.Acquire(t.Context(), 1))
		must(t, s.Release(1))
		if _, stat, err := live(t, m).Exists(t.Context(), path); err != nil || stat.Version != 0 {
			t.Errorf("the directory was written to: %+v, %v", stat, err)
		}
		must(t, srv.Set(path, []byte("2")))
		theirs := path + "/0f8fad5bd9cb469fa16570867728950e"
		must(t, srv.Create(theirs, nil))
		if ok, err := s.TryAcquire(t.Context(), 2); ok || err != nil {
			t.Errorf("2 of 2 beside another one's: %v, %v", ok, err)
		}
		must(t, s.Acquire(t.Context(), 1))
		waiting := start(func() error { return s.Acquire(t.Context(), 1) })
		pending(t, "Acquire", waiting)
		must(t, srv.Delete(theirs))
		must(t, <-waiting)
		if data, _ := srv.Get(path); string(data) != "2" {
			t.Errorf("the data is %q now", data)
		}
		must(t, s.Release(1))
		must(t, s.Release(1))
	})
}

// With LayoutLeaderSelector or LayoutKazoo every contender of a line is a candidate, and a line of latches is another
// line.
func TestElectionBesideLocks(t *testing.T) {
	for _, l := range []zksync.Layout{zksync.LayoutLeaderSelector, zksync.LayoutKazoo} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			theirs := live(t, srv.Connect(t))
			must(t, theirs.MakeDir(t.Context(), path))
			var znodes []string
			for _, name := range []string{"_c_0f8fad5b-d9cb-469f-a165-70867728950e-lock-", "0f8fad5bd9cb469fa16570867728950e__lock__", "_c_0f8fad5b-d9cb-469f-a165-70867728950e-latch-"} {
				p, err := theirs.Create(t.Context(), path+"/"+name, []byte(name[len(name)-6:]), zk.FlagEphemeralSequential)
				if err != nil {
					t.Fatal(err)
				}
				znodes = append(znodes, p)
			}
			e := zksync.NewElection(srv.Connect(t), path, zksync.WithLayout(l), zksync.WithID("ours"))
			leading := campaign(t, e)
			synctest.Wait()
			all, err := e.Candidates(t.Context())
			must(t, err)
			if got := strings.Join(ids(all), " "); got != "-lock- ck__ ours" && got != "-lock- lock__ ours" {
				t.Errorf("%v: candidates %s", l, got)
			}
			must(t, theirs.Delete(t.Context(), znodes[0], -1))
			time.Sleep(time.Minute)
			select {
			case <-leading:
				t.Errorf("%v: leads beside another one", l)
			default:
			}
			must(t, theirs.Delete(t.Context(), znodes[1], -1))
			<-leading
		})
	}
}

// A layout that a primitive does not have is refused with the name of the option.
func TestLayoutsThatAreNotThere(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		selector := zksync.WithLayout(zksync.LayoutLeaderSelector)
		for want, err := range map[string]error{
			"WithLayout: there is no Layout(7)":                                             zksync.NewMutex(m, path, zksync.WithLayout(7)).Lock(ctx),
			"WithLayout: there is no Layout(-1)":                                            zksync.NewMutex(m, path, zksync.WithLayout(-1)).Lock(ctx),
			"LayoutLeaderSelector is not for Mutex, which has LayoutCurator, LayoutKazoo":   zksync.NewMutex(m, path, selector).Lock(ctx),
			"LayoutLeaderSelector is not for RWMutex, which has LayoutCurator, LayoutKazoo": zksync.NewRWMutex(m, path, selector).RLock(ctx),
			"LayoutLeaderSelector is not for Semaphore":                                     zksync.NewSemaphore(m, path, 1, selector).Acquire(ctx, 1),
		} {
			if !errors.Is(err, zksync.ErrInvalidOption) || !strings.Contains(err.Error(), want) {
				t.Errorf("error %q, want one that says %q", err, want)
			}
		}
	})
}

// With LayoutKazoo a Semaphore at the root is refused: its line would count as a unit.
func TestKazooSemaphoreAtTheRoot(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		if err := zksync.NewSemaphore(m, "/", 1, asKazoo).Acquire(t.Context(), 1); !errors.Is(err, session.ErrInvalidPath) {
			t.Errorf("Acquire: %v", err)
		}
		sem := zksync.NewSemaphore(m, "/", 1)
		must(t, sem.Acquire(t.Context(), 1))
		must(t, sem.Release(1))
	})
}
