package zksync_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

var byEphemeral = zksync.WithLayout(zksync.LayoutEphemeral)

// A plainCandidate elects as programs with go-zookeeper alone do: it creates the
// ephemeral, or waits until the ephemeral is gone.
type plainCandidate struct {
	conn *zk.Conn
	path string
}

func newPlainCandidate(t *testing.T, srv servers.Server, path string) plainCandidate {
	conn, _, err := zk.Connect([]string{srv.Address()}, 10*time.Second, zk.WithLogInfo(false), zk.WithLogger(quiet{}))
	must(t, err)
	t.Cleanup(conn.Close)
	return plainCandidate{conn, path}
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

// lead returns when this candidate leads.
func (c plainCandidate) lead() error {
	for {
		_, err := c.conn.Create(c.path, []byte("plain"), zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		if err == nil || !errors.Is(err, zk.ErrNodeExists) {
			return err
		}
		ok, _, gone, err := c.conn.ExistsW(c.path)
		if err != nil {
			return err
		}
		if ok {
			<-gone
		}
	}
}

// An Election with LayoutEphemeral, whose one ephemeral holds the leader's id, elects together with a plain client:
// each waits for the other, Leader and Observe see both, and tokens grow. To see this test fail, have line.raceRun.create
// take NodeExists for success.
func TestEphemeralElectionBesideAPlainClient(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		path := servers.Path(t) + "/controller"
		m := srv.Connect(t)
		e := zksync.NewElection(m, path, byEphemeral, zksync.WithID("ours"))
		seen := zksync.NewElection(srv.Connect(t), path, byEphemeral).Observe(t.Context()).Events()
		expect := func(id string) {
			t.Helper()
			for { // the pause between two leaders may be too short to be seen
				if c := <-seen; c.ID == id {
					return
				} else if c.ID != "" {
					t.Fatalf("observed %+v, want %q", c, id)
				}
			}
		}
		lead, err := e.Campaign(t.Context())
		must(t, err)
		first, _ := zksync.Token(lead)
		data, stat, err := live(t, m).Get(t.Context(), path)
		must(t, err)
		if string(data) != "ours" || stat.Czxid != first || stat.EphemeralOwner != live(t, m).ID() {
			t.Errorf("the leader's znode is %q, %+v; token %d", data, stat, first)
		}
		expect("ours")

		plain := newPlainCandidate(t, srv, path)
		leads := make(chan error, 1)
		go func() { leads <- plain.lead() }()
		all, err := e.Candidates(t.Context())
		if err != nil || len(all) != 1 || all[0] != (zksync.Candidate{ID: "ours", Token: first, Session: live(t, m).ID()}) {
			t.Errorf("candidates %+v, %v", all, err)
		}
		select {
		case err := <-leads:
			t.Fatalf("the plain client leads beside us: %v", err)
		default:
		}
		must(t, e.Resign())
		must(t, <-leads)
		expect("plain")

		again := make(chan context.Context, 1)
		go func() {
			lead, err := e.Campaign(t.Context())
			if err != nil {
				t.Error(err)
			}
			again <- lead
		}()
		leader, err := e.Leader(t.Context())
		if err != nil || leader.ID != "plain" || leader.Token <= first {
			t.Errorf("the leader is %+v, %v", leader, err)
		}
		select {
		case <-again:
			t.Fatal("two lead")
		default:
		}
		must(t, plain.conn.Delete(path, 0))
		second, _ := zksync.Token(<-again)
		if second <= leader.Token {
			t.Errorf("token %d after %d", second, leader.Token)
		}
		expect("ours")
		must(t, e.Resign())
		if _, err := e.Leader(t.Context()); !errors.Is(err, zksync.ErrNoLeader) {
			t.Errorf("Leader after Resign: %v", err)
		}
	})
}

// Run gives a lost leadership up, and leads again when the znode of its previous
// session is gone.
func TestEphemeralElectionRunsAgain(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		e := zksync.NewElection(m, master, byEphemeral)
		var tokens []int64
		must(t, e.Run(t.Context(), func(ctx context.Context) error {
			token, _ := zksync.Token(ctx)
			if tokens = append(tokens, token); len(tokens) == 3 {
				return nil
			}
			must(t, srv.ExpireSession(live(t, m).ID()))
			<-ctx.Done()
			if err := context.Cause(ctx); !errors.Is(err, zksync.ErrLost) {
				t.Errorf("leadership ended with %v", err)
			}
			return nil
		}))
		if !slices.IsSorted(tokens) || len(tokens) != 3 {
			t.Errorf("tokens %v", tokens)
		}
		if _, ok := srv.Get(master); ok {
			t.Error("the leader's znode is left")
		}
	})
}

// A create whose answer was lost is decided by a look at the znode, and what a lost
// request or a lost answer leaves is used or removed. To see this test fail, have
// findOwn return nil.
func TestEphemeralElectionOverLostAnswers(t *testing.T) {
	for _, at := range []zkserver.Moment{zkserver.BeforeCommit, zkserver.AfterCommit, zkserver.BeforeReply} {
		for _, times := range []int{1, 3} {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := srv.Connect(t)
				s := live(t, m)
				srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Path: master, Times: times, At: at, Do: zksynctest.Disconnect})
				e := zksync.NewElection(m, master, byEphemeral)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				lead, err := e.Campaign(ctx)
				must(t, err)
				token, _ := zksync.Token(lead)
				if leader, err := e.Leader(t.Context()); err != nil || leader.Token != token || leader.Session != s.ID() {
					t.Errorf("the leader is %+v, %v; our token is %d", leader, err, token)
				}
				srv.Inject(zksynctest.Fault{Op: zkserver.OpDelete, Path: master, Times: times, At: at, Do: zksynctest.Disconnect})
				must(t, e.Resign())
				if _, ok := srv.Get(master); ok {
					t.Error("the leader's znode is left")
				}
			})
		}
	}
}

// Two candidates of one Manager with one id never lead at the same time, though after
// a lost answer each finds a znode of its own session. To see this test fail, have
// takeSlot make a slot for each caller.
func TestEphemeralElectionOfOneManager(t *testing.T) {
	for _, at := range []zkserver.Moment{zkserver.BeforeCommit, zkserver.AfterCommit} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			m := srv.Connect(t)
			live(t, m)
			srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Path: master, Times: 2, At: at, Do: zksynctest.Disconnect})
			w := &witness{t: t}
			var all sync.WaitGroup
			for range 3 {
				e := zksync.NewElection(m, master, byEphemeral, zksync.WithID("same"))
				all.Go(func() {
					lead, err := e.Campaign(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					w.enter("candidate", lead)
					time.Sleep(time.Second)
					w.leave("candidate")
					if err := e.Resign(); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			if w.passed != 3 {
				t.Errorf("%d have led, want 3", w.passed)
			}
		})
	}
}

// A removal by an operator ends the leadership, and frees another candidate of the same
// Manager, without a Resign. To see this test fail, have slotHold.gone do
// nothing.
func TestEphemeralElectionBrokenByAnOperator(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		a, b := zksync.NewElection(m, master, byEphemeral), zksync.NewElection(m, master, byEphemeral)
		lead, err := a.Campaign(t.Context())
		must(t, err)
		next := campaign(t, b)
		time.Sleep(time.Second)
		must(t, srv.Delete(master))
		if err := ended(t, lead, time.Second); !errors.Is(err, zksync.ErrRemoved) {
			t.Errorf("leadership ended with %v", err)
		}
		<-next
		mustBe(t, a.Resign(), zksync.ErrLost, "resign", master)
		time.Sleep(time.Minute)
		if _, ok := srv.Get(master); !ok {
			t.Error("Resign after the loss has removed the znode of the next leader")
		}
		must(t, b.Resign())
	})
}

// Resign deletes only the znode of its own leadership: neither the next leader's, if the answer to the removal was
// lost, nor the znode of a plain client that came after an operator had deleted ours, nor the znode of a candidate
// that was waiting. To see this test fail, have slotHold.deleteZnodes repeat the delete, deleteRaced delete any version,
// or versionAfter return 1.
func TestEphemeralElectionResignsForItselfAlone(t *testing.T) {
	plainLeader := func(srv *zksynctest.Server, other *session.Session) {
		if _, err := other.Create(context.Background(), master, []byte("plain"), zk.FlagEphemeral); err != nil {
			panic(err)
		}
	}
	for name, test := range map[string]func(t *testing.T, srv *zksynctest.Server, other *session.Session) error{
		"the answer is lost": func(t *testing.T, srv *zksynctest.Server, other *session.Session) error {
			f := zksynctest.Fault{Op: zkserver.OpDelete, Path: master, At: zksynctest.AfterCommit, Do: zksynctest.Call(func() { plainLeader(srv, other) })}
			srv.Inject(f)
			f.Do = zksynctest.Disconnect
			srv.Inject(f)
			return nil
		},
		"an operator was faster, and a candidate of this toolkit": func(t *testing.T, srv *zksynctest.Server, other *session.Session) error {
			next := zksync.NewElection(srv.Connect(t), master, byEphemeral, zksync.WithID("plain"))
			won := campaign(t, next)
			f := zksynctest.Fault{Op: zkserver.OpDelete, Path: master, At: zksynctest.BeforeCommit, Do: zksynctest.Call(func() {
				must(t, srv.Delete(master))
				<-won
			})}
			time.Sleep(time.Second) // next has seen the leader
			srv.Inject(f)
			return zksync.ErrRemoved
		},
		"an operator was faster": func(t *testing.T, srv *zksynctest.Server, other *session.Session) error {
			f := zksynctest.Fault{Op: zkserver.OpDelete, Path: master, At: zksynctest.BeforeCommit, Do: zksynctest.Call(func() {
				must(t, srv.Delete(master))
				plainLeader(srv, other)
			})}
			srv.Inject(f)
			return zksync.ErrRemoved
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				other := live(t, srv.Connect(t))
				e := zksync.NewElection(srv.Connect(t), master, byEphemeral)
				_, err := e.Campaign(t.Context())
				must(t, err)
				want := test(t, srv, other)
				if err := e.Resign(); !errors.Is(err, want) {
					t.Errorf("Resign: %v, want %v", err, want)
				}
				time.Sleep(time.Minute)
				if data, _ := srv.Get(master); string(data) != "plain" {
					t.Errorf("the leader's znode is %q, want the plain client's", data)
				}
			})
		})
	}
}

// Resign removes the znode even if another client has changed its data.
func TestEphemeralElectionWithChangedData(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		e := zksync.NewElection(srv.Connect(t), master, byEphemeral)
		lead, err := e.Campaign(t.Context())
		must(t, err)
		time.Sleep(time.Second)
		must(t, srv.Set(master, []byte("a note")))
		time.Sleep(time.Second)
		if lead.Err() != nil {
			t.Errorf("a change of the data has ended leadership: %v", context.Cause(lead))
		}
		must(t, e.Resign())
		if _, ok := srv.Get(master); ok {
			t.Error("the leader's znode is left")
		}
	})
}

// A candidate that gives up leaves no znode, whenever that happens.
func TestEphemeralElectionGivenUp(t *testing.T) {
	for _, op := range []zkserver.OpCode{zkserver.OpMulti, zkserver.OpExists, zkserver.OpGetData} {
		for _, at := range []zkserver.Moment{zkserver.BeforeCommit, zkserver.AfterCommit, zkserver.BeforeReply} {
			for _, lost := range []bool{false, true} {
				for _, taken := range []bool{false, true} {
					bubble(t, func(t *testing.T, srv *zksynctest.Server) {
						if taken {
							other := live(t, srv.Connect(t))
							_, err := other.Create(t.Context(), master, nil, zk.FlagEphemeral)
							must(t, err)
						}
						m := srv.Connect(t)
						s := live(t, m)
						ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
						defer cancel()
						f := zksynctest.Fault{Session: s.ID(), Op: op, Path: master, At: at, Do: zksynctest.Call(func() {
							cancel()
							synctest.Wait()
						})}
						srv.Inject(f)
						if lost {
							f.Do = zksynctest.Disconnect
							srv.Inject(f)
						}
						e := zksync.NewElection(m, master, byEphemeral)
						if _, err := e.Campaign(ctx); err == nil {
							if op == zkserver.OpMulti || taken {
								t.Errorf("%v %v lost %v taken %v: Campaign has succeeded", op, at, lost, taken)
							}
							must(t, e.Resign())
						}
						time.Sleep(time.Minute)
						if _, ok := srv.Get(master); ok != taken {
							t.Errorf("%v %v lost %v taken %v: the znode is there: %v", op, at, lost, taken, ok)
						}
						again := zksync.NewElection(m, "/other", byEphemeral)
						_, err := again.Campaign(t.Context())
						must(t, err)
					})
				}
			}
		}
	}
}

// Few of many candidates send a create when the leader has gone, and one of them leads
// within a second. To see this test fail, let line.raceRun.rest report a vacancy at once.
func TestEphemeralElectionIsNoHerd(t *testing.T) {
	const candidates = 50
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		leads := make(chan *zksync.Election)
		for range candidates {
			e := zksync.NewElection(srv.Connect(t), master, byEphemeral)
			go func() {
				if _, err := e.Campaign(t.Context()); err == nil {
					leads <- e
				}
			}()
		}
		leader := <-leads
		time.Sleep(time.Minute)
		// Each answer takes a while, as between machines.
		srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Path: master, Times: -1, At: zksynctest.BeforeReply, Do: zksynctest.Delay(time.Millisecond)})
		srv.Inject(zksynctest.Fault{Op: zkserver.OpExists, Path: master, Times: -1, At: zksynctest.BeforeReply, Do: zksynctest.Delay(time.Millisecond)})
		srv.Inject(zksynctest.Fault{Op: zkserver.OpGetData, Path: master, Times: -1, At: zksynctest.BeforeReply, Do: zksynctest.Delay(time.Millisecond)})
		srv.Inject(zksynctest.Fault{At: zksynctest.OnWatch, Path: master, Times: -1, Do: zksynctest.Delay(time.Millisecond)})
		var creates []int
		for range 3 {
			srv.ResetOps()
			begun := time.Now()
			must(t, leader.Resign())
			leader = <-leads
			if took := time.Since(begun); took > time.Second {
				t.Errorf("the next leader came after %v", took)
			}
			time.Sleep(time.Minute)
			n := 0
			for _, op := range srv.Ops() {
				if op.Code == zkserver.OpMulti && len(op.Sub) == 2 {
					n++
				}
			}
			creates = append(creates, n)
		}
		t.Logf("creates at each change: %v", creates)
		for _, n := range creates {
			if n > candidates/2 {
				t.Errorf("creates at each change: %v, want at most %d", creates, candidates/2)
			}
		}
	})
}

// A persistent znode at the path is a mistake that waiting does not heal: Campaign
// says so at once.
func TestEphemeralElectionAtADirectory(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		_, err := zksync.NewElection(srv.Connect(t), master).Campaign(t.Context())
		must(t, err)
		e := zksync.NewElection(srv.Connect(t), master, byEphemeral)
		_, err = e.Campaign(t.Context())
		mustBe(t, err, session.ErrConflict, "campaign", master)
		if _, err := e.Leader(t.Context()); !errors.Is(err, zksync.ErrNoLeader) {
			t.Errorf("Leader: %v", err)
		}
		_, err = zksync.NewElection(srv.Connect(t), "/", byEphemeral).Campaign(t.Context())
		mustBe(t, err, session.ErrInvalidPath, "campaign", "/")
	})
}
