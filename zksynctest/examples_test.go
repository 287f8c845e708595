package zksynctest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// exampleT implements testing.TB outside of a test.
type exampleT struct {
	testing.TB
	cleanups []func()
}

func (*exampleT) Helper()                           {}
func (*exampleT) Failed() bool                      { return false }
func (*exampleT) Context() context.Context          { return context.Background() }
func (*exampleT) Fatal(args ...any)                 { panic(fmt.Sprint(args...)) }
func (*exampleT) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (*exampleT) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (t *exampleT) Cleanup(f func())                { t.cleanups = append(t.cleanups, f) }

// runTest runs a test and its clean-up.
func runTest(test func(t testing.TB)) {
	t := &exampleT{}
	test(t)
	for _, f := range slices.Backward(t.cleanups) {
		f()
	}
}

// A test starts a server and connects to it. Both end with the test.
func ExampleStart() {
	test := func(t testing.TB) { // a *testing.T
		srv := zksynctest.Start(t)
		mu := zksync.NewMutex(srv.Connect(t), "/locks/a")
		if err := mu.Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		fmt.Println(len(srv.Sessions()), "session")
	}
	runTest(test)
	// Output: 1 session
}

// An option changes the server of a test: here sessions may be as short as 100 ms.
func ExampleWithTick() {
	test := func(t testing.TB) {
		srv := zksynctest.Start(t, zksynctest.WithTick(50*time.Millisecond))
		s, err := srv.Connect(t, session.WithTimeout(100*time.Millisecond)).Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println(s.Timeout())
	}
	runTest(test)
	// Output: 100ms
}

// A cut-off holder loses its lock before the next holder gets it. In a bubble of testing/synctest
// this takes no real time, with a session timeout of any length.
func ExampleServer_Partition() {
	test := func(t testing.TB) {
		// Outside of a bubble, a busy machine must not delay the first holder by a part of the timeout.
		srv := zksynctest.Start(t, zksynctest.WithTick(500*time.Millisecond))
		m := srv.Connect(t, session.WithTimeout(2*time.Second))
		mine, theirs := zksync.NewMutex(m, "/locks/a"), zksync.NewMutex(srv.Connect(t), "/locks/a")
		held, err := mine.LockContext(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s, err := m.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		srv.Partition(s.ID())
		if err := theirs.Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		fmt.Println("the first holder knows:", held.Err() != nil)
	}
	runTest(test)
	// Output: the first holder knows: true
}

// A test ends a session by force, as an operator can.
func ExampleServer_ExpireSession() {
	test := func(t testing.TB) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t)
		s, err := m.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := srv.ExpireSession(s.ID()); err != nil {
			t.Fatal(err)
		}
		<-s.Done()
		next, err := m.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println(errors.Is(s.Err(), session.ErrLost), next.ID() != s.ID())
	}
	runTest(test)
	// Output: true true
}

// The answer to the create of a lock is lost, and the create is not sent again.
func ExampleFault() {
	test := func(t testing.TB) {
		srv := zksynctest.Start(t)
		mu := zksync.NewMutex(srv.Connect(t), "/locks/a")
		if err := mu.Do(t.Context(), func(context.Context) error { return nil }); err != nil {
			t.Fatal(err) // creates the directory
		}
		lost := srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, At: zksynctest.AfterCommit, Do: zksynctest.Disconnect})
		if err := mu.Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		line, _ := srv.Children("/locks/a")
		fmt.Println("struck", lost.Count(), "time, contenders:", len(line))
	}
	runTest(test)
	// Output: struck 1 time, contenders: 1
}

// A request that a server throttles is sent again.
func ExampleServer_Inject() {
	test := func(t testing.TB) {
		srv := zksynctest.Start(t)
		s, err := srv.Connect(t).Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		throttled := srv.Inject(zksynctest.Fault{Op: zkserver.OpCreate, Do: zksynctest.Throttle, Times: 2})
		path, err := s.Create(t.Context(), "/a", nil, zk.FlagEphemeral)
		fmt.Println(path, err, "throttled:", throttled.Count())
	}
	runTest(test)
	// Output: /a <nil> throttled: 2
}

// A client loses its leader. The session continues with the next leader.
func ExampleEmbeddedEnsemble() {
	test := func(t testing.TB) {
		e := zksynctest.StartEnsemble(t, 3, zksynctest.WithElectionTime(0))
		s, err := e.Connect(t).Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		old := e.Leader()
		e.Kill(old)
		next := e.WaitLeader(old)
		fmt.Println(old, "to", next, s.SyncQuorum(t.Context(), "/"))
	}
	runTest(test)
	// Output: 3 to 2 <nil>
}

// The clients of one server are cut off, and continue on another server.
func ExampleEmbeddedEnsemble_Cut() {
	test := func(t testing.TB) {
		e := zksynctest.StartEnsemble(t, 3, zksynctest.WithTick(50*time.Millisecond))
		m := e.Connect(t, session.WithTimeout(time.Second))
		s, err := m.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		e.Cut(1, zksynctest.Client)
		fmt.Println(s.SyncQuorum(t.Context(), "/"), s.Err())
	}
	runTest(test)
	// Output: <nil> <nil>
}

// A client with any number of sessions is cut off until the link is healed.
func ExampleLink() {
	test := func(t testing.TB) {
		srv := zksynctest.Start(t, zksynctest.WithTick(50*time.Millisecond))
		link := srv.NewLink(t)
		m := link.Connect(t, session.WithTimeout(200*time.Millisecond))
		mu := zksync.NewMutex(m, "/locks/a")
		held, err := mu.LockContext(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		link.Cut()
		<-held.Done()
		fmt.Println("Unlock after a loss:", errors.Is(mu.Unlock(), zksync.ErrLost))
		link.Heal()
		fmt.Println("Lock in the next session:", mu.Lock(t.Context()))
	}
	runTest(test)
	// Output:
	// Unlock after a loss: true
	// Lock in the next session: <nil>
}

// A test with real servers needs Java and ZooKeeper, and is skipped without them.
func ExampleRealZooKeeper() {
	_ = func(t *testing.T) {
		e := zksynctest.RealZooKeeper(t, 3, zksynctest.RealTickTime(200*time.Millisecond))
		m := e.Connect(t)
		old := e.Leader()
		e.Pause(old)
		e.WaitLeader(old)
		if err := zksync.NewMutex(m, "/locks/a").Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// An option changes the configuration of real servers.
func ExampleRealProperty() {
	_ = func(t *testing.T) {
		e := zksynctest.RealZooKeeper(t, 1, zksynctest.RealProperty("maxClientCnxns", "1"))
		e.Connect(t)
	}
}

// TestMain stops the server that the tests share.
func ExampleStopSharedAfter() {
	_ = func(m *testing.M) { // TestMain
		os.Exit(zksynctest.StopSharedAfter(m).Run())
	}
}
