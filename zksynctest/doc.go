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
// [Start] runs a server in the test's process. Connect gives the test a Manager on the server, in memory; Addr gives a
// TCP address for any client in any language. The server behaves as ZooKeeper does, with the few exceptions that
// package zkserver names. It suffers faults that no real server suffers on order: an answer lost at a chosen request, a
// session that expires now, a server that freezes, lags, or hangs up in the middle of a handshake. A [Fault] picks its
// requests by session, operation, path, count or any predicate. Ops lists the requests of the clients, in order, and
// their outcomes; Dump shows the tree. A test that failed logs the operations that were struck by faults.
//
// The server runs inside a bubble of testing/synctest: no timer ticks while nothing
// happens, the bubble sees every wait, and sessions that take minutes to expire take
// microseconds.
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
// with breakable links between them and to their clients; [RealShared] starts a
// process that the tests of a package share. Both skip the test, loudly, where Java
// or ZooKeeper is missing, and fail it if the environment variable named by
// [RequireRealEnv] is 1.
//
// # Guarantees
//
// Every server that a test starts ends with the test, goroutines and processes
// included, also if the test fails. Nothing listens beyond the loopback interface.
// The embedded server's faults strike exactly where they are put; its answers, zxids,
// Stats, error codes and events agree with ZooKeeper 3.9, which was checked against
// 3.8.
//
// # Non-guarantees
//
// The embedded server keeps its tree in memory, and the endpoints of an embedded
// ensemble share it: elections and lagging followers are imitated, not run.
package zksynctest
