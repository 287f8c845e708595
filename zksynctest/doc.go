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
//			<-held.Done() // before 30 s of the bubble's time have passed
//		})
//	}
//
// # The embedded server
//
// [Start] runs a server in the test's process. Connect gives the test a Manager on the server, in
// memory; Addr gives a TCP address for any client in any language. The server behaves like
// ZooKeeper, with the exceptions that package zkserver lists. The server also has faults that a
// real server cannot have on request: a lost answer to a chosen request, a session that expires
// now, a server that freezes, lags, or closes a connection in the middle of a handshake. A [Fault]
// selects its requests by session, operation, path, count or any predicate. Ops lists the requests
// of the clients, in order, with their results; Dump shows the tree. A failed test logs the
// operations that faults struck.
//
// The server runs inside a bubble of testing/synctest: an idle server has no timers, every wait is
// durable, and a session with a timeout of minutes expires in about a millisecond of real time.
//
// [StartEnsemble] runs several endpoints over one tree in the same way. The endpoints behave like
// an ensemble: a test can kill, pause and cut off each endpoint; they elect leaders, lag behind,
// and take over sessions from each other. A leader that Depose cuts off does not notice for a
// while. A fail-over that takes seconds with real servers takes milliseconds.
//
// # Real servers
//
// [RealZooKeeper] starts one or three ZooKeeper processes on the loopback interface, with breakable
// links between them and to their clients. [RealShared] starts a process that the tests of a
// package share. Without Java or ZooKeeper both functions skip the test with a message, or fail it
// if the environment variable named by [RequireRealEnv] is 1.
//
// # Guarantees
//
// Every server that a test starts ends with the test, goroutines and processes included, also if
// the test fails. No server listens beyond the loopback interface. The faults of the embedded
// server strike exactly the selected requests; its answers, zxids, Stats, error codes and events
// agree with ZooKeeper 3.9. The agreement was checked against 3.8.
//
// # Non-guarantees
//
// The embedded server keeps its tree in memory, and the endpoints of an embedded ensemble share it:
// the ensemble imitates elections and lagging followers.
package zksynctest
