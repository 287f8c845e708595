// Package zksynctest tests code that coordinates through ZooKeeper: on an
// embedded server that can be made to fail in many ways, in milliseconds, and on
// real Apache ZooKeeper.
//
//	func TestWorkerStopsWhenCutOff(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			srv := zksynctest.Start(t)
//			m := srv.Connect(t, session.WithTimeout(30*time.Second))
//			held, err := zksync.NewMutex(m, "/lock").LockContext(t.Context())
//			if err != nil {
//				t.Fatal(err)
//			}
//			s, _ := m.Session(t.Context())
//			srv.Partition(s.ID())
//			<-held.Done() // after 20 s of the bubble's time
//		})
//	}
//
// # The embedded server
//
// [Start] runs one in the test's process. Connect gives the test a Manager on it,
// in memory; Addr a TCP address for any client in any language. It does what
// ZooKeeper does, with the few exceptions that package zkserver names; and it suffers what no real server can be made to suffer on order:
// an answer lost at a chosen request, a session that expires now, a server that
// freezes, lags, or hangs up in the middle of a handshake. A [Fault] picks what goes
// wrong by session, operation, path, count or any predicate. Ops tells afterwards
// what the server was asked, in order, and what became of it; Dump what it holds. A
// test that failed logs what faults did.
//
// It runs inside a bubble of testing/synctest: no timer ticks while nothing
// happens, everything that waits does so where the bubble can see it, and sessions
// that take minutes to expire take microseconds.
//
// [StartEnsemble] runs several endpoints over one tree in the same way, which seem to
// be an ensemble: they are killed, paused and cut off one by one, elect leaders, lag
// behind, and take sessions over from each other. A leader that Depose cuts off goes on
// for a while without noticing. A fail-over that takes real servers seconds takes
// microseconds.
//
// # Real servers
//
// [RealZooKeeper] starts one or three ZooKeeper processes on the loopback interface,
// with breakable links between them and to their clients; [RealShared] one that the
// tests of a package share. Both skip the test, loudly, where Java or ZooKeeper is
// missing, and fail it if the environment variable named by [RequireRealEnv] is 1.
//
// # Guarantees
//
// What a test starts ends with it, goroutines and processes included, also if it
// fails. Nothing listens beyond the loopback interface. The embedded server's
// faults strike exactly where they are put; its answers, zxids, Stats, error codes
// and events are those of ZooKeeper 3.9, which was checked against 3.8.
//
// # Non-guarantees
//
// The embedded server keeps its tree in memory, and the endpoints of an embedded
// ensemble share it: elections and lagging followers are imitated, not run.
package zksynctest
