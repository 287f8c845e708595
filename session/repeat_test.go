package session_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

var reads = map[zkserver.OpCode]func(context.Context, *session.Session) error{
	zkserver.OpGetData: func(ctx context.Context, s *session.Session) error { _, _, err := s.Get(ctx, "/n"); return err },
	zkserver.OpExists: func(ctx context.Context, s *session.Session) error {
		ok, _, err := s.Exists(ctx, "/n")
		if err == nil && !ok {
			return zk.ErrNoNode
		}
		return err
	},
	zkserver.OpGetChildren2: func(ctx context.Context, s *session.Session) error { _, _, err := s.Children(ctx, "/n"); return err },
	zkserver.OpSync:         func(ctx context.Context, s *session.Session) error { return s.Sync(ctx, "/n") },
}

// breaks has each way in which a connection breaks around one request.
var breaks = map[string]zkserver.Fault{
	"before":         {At: zkserver.BeforeCommit, Do: zkserver.Disconnect},
	"between":        {At: zkserver.AfterCommit, Do: zkserver.Disconnect},
	"without answer": {At: zkserver.BeforeReply, Do: zkserver.Disconnect},
	// The answer of a server that the session has left. The server closes the connection.
	"moved": {At: zkserver.BeforeCommit, Do: zkserver.Error(-118)},
}

// Reads are repeated over lost connections.
func TestReadsAreRepeated(t *testing.T) {
	for op, read := range reads {
		for where, fault := range breaks {
			t.Run(op.String()+" "+where, func(t *testing.T) {
				bubble(t, func(t *testing.T, srv *zksynctest.Server) {
					s := current(t, connect(t, srv, three))
					create(t, s, "/n", 0)
					fault.Op, fault.Path, fault.Times = op, "/n", 5
					inj := srv.Inject(fault)
					if err := read(t.Context(), s); err != nil {
						t.Errorf("%v, want the read to be repeated", err)
					}
					if n := inj.Count(); n != 5 {
						t.Errorf("the connection broke %d times, want 5", n)
					}
				})
			})
		}
	}
}

// A read on which every connection breaks is repeated with pauses that grow.
func TestRepetitionSlowsDown(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		inj := srv.Inject(zkserver.Fault{Op: zkserver.OpGetData, Do: zkserver.Disconnect, Times: -1})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, _, err := s.Get(ctx, "/n")
		mustBe(t, err, context.DeadlineExceeded)
		if n := inj.Count(); n < 20 || n > 200 {
			t.Errorf("asked %d times within a minute, want about one a second", n)
		}
	})
}

// Set and Delete with a version are repeated over lost connections.
func TestWritesWithAVersionAreRepeated(t *testing.T) {
	type write struct {
		op   zkserver.OpCode
		call func(context.Context, *session.Session) error
		// echo is the error of the repetition if the first attempt succeeded
		echo error
	}
	for name, w := range map[string]write{
		"set": {zkserver.OpSetData, func(ctx context.Context, s *session.Session) error {
			_, err := s.Set(ctx, "/n", []byte("new"), 0)
			return err
		}, zk.ErrBadVersion},
		"delete": {zkserver.OpDelete, func(ctx context.Context, s *session.Session) error { return s.Delete(ctx, "/n", 0) }, zk.ErrNoNode},
	} {
		for where, fault := range breaks {
			t.Run(name+" "+where, func(t *testing.T) {
				bubble(t, func(t *testing.T, srv *zksynctest.Server) {
					s := current(t, connect(t, srv, three))
					create(t, s, "/n", 0)
					fault.Op, fault.Times = w.op, 1
					srv.Inject(fault)
					err := w.call(t.Context(), s)
					if fault.At == zkserver.BeforeCommit {
						if err != nil {
							t.Errorf("not done the first time, %v the second", err)
						}
						return
					}
					mustBe(t, err, session.ErrConnectionLost, w.echo)
					switch data, ok := srv.Get("/n"); {
					case name == "set" && string(data) != "new", name == "delete" && ok:
						t.Errorf("not done: %q, %v", data, ok)
					}
					if n := count(srv.Ops(), w.op); n != 2 {
						t.Errorf("sent %d times, want 2", n)
					}
				})
			})
		}
	}
	t.Run("refused at once", func(t *testing.T) {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			s := current(t, connect(t, srv, three))
			create(t, s, "/n", 0)
			if _, err := s.Set(t.Context(), "/n", nil, 7); !errors.Is(err, zk.ErrBadVersion) || errors.Is(err, session.ErrConnectionLost) {
				t.Errorf("error %v, want BadVersion alone", err)
			}
			if err := s.Delete(t.Context(), "/m", 7); !errors.Is(err, zk.ErrNoNode) || errors.Is(err, session.ErrConnectionLost) {
				t.Errorf("error %v, want NoNode alone", err)
			}
		})
	})
}

// Set and Delete without a version, Create and Multi are sent once, and fail with ErrConnectionLost when the answer was
// lost.
func TestWritesThatCouldHappenTwiceAreNotRepeated(t *testing.T) {
	for op, write := range map[zkserver.OpCode]func(context.Context, *session.Session) error{
		zkserver.OpSetData: func(ctx context.Context, s *session.Session) error { _, err := s.Set(ctx, "/n", nil, -1); return err },
		zkserver.OpDelete:  func(ctx context.Context, s *session.Session) error { return s.Delete(ctx, "/n", -1) },
		zkserver.OpCreate: func(ctx context.Context, s *session.Session) error {
			_, err := s.Create(ctx, "/c-", nil, zk.FlagSequence)
			return err
		},
		zkserver.OpMulti: func(ctx context.Context, s *session.Session) error {
			_, err := s.Multi(ctx, &zk.SetDataRequest{Path: "/n", Version: 0})
			return err
		},
	} {
		for where, fault := range breaks {
			t.Run(op.String()+" "+where, func(t *testing.T) {
				bubble(t, func(t *testing.T, srv *zksynctest.Server) {
					s := current(t, connect(t, srv, three))
					create(t, s, "/n", 0)
					srv.ResetOps()
					fault.Op, fault.Times = op, 1
					srv.Inject(fault)
					err := write(t.Context(), s)
					mustBe(t, err, session.ErrConnectionLost, zk.ErrConnectionClosed)
					var e *session.Error
					if !errors.As(err, &e) || e.Path == "" || e.Op == "" {
						t.Errorf("%#v does not say what failed where", err)
					}
					if err := s.Sync(t.Context(), "/"); err != nil {
						t.Fatal(err)
					}
					if n := count(srv.Ops(), op); n != 1 {
						t.Errorf("sent %d times, want once", n)
					}
				})
			})
		}
	}
}

// A write that cannot have been sent waits for a connection.
func TestWritesWaitForAConnection(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		srv.Stop()
		synctest.Wait()
		done := make(chan error)
		go func() { _, err := s.Create(t.Context(), "/n", nil, 0); done <- err }()
		time.Sleep(time.Second)
		srv.Start()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
