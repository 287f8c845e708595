package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// terms records who led when, by the contexts of leadership.
type terms struct {
	t    *testing.T
	mu   sync.Mutex
	all  []*term
	done sync.WaitGroup
}

type term struct {
	who        string
	token      int64
	start, end time.Time
}

func (r *terms) begin(who string, lead context.Context) {
	token, _ := zksync.Token(lead)
	one := &term{who: who, token: token, start: time.Now()}
	r.mu.Lock()
	r.all = append(r.all, one)
	r.mu.Unlock()
	r.done.Add(1)
	context.AfterFunc(lead, func() {
		defer r.done.Done()
		r.mu.Lock()
		one.end = time.Now()
		r.mu.Unlock()
	})
}

// check wants each term to begin no earlier than every earlier one ended, and
// tokens to grow.
func (r *terms) check(slack time.Duration) {
	r.t.Helper()
	r.done.Wait()
	var before *term
	for _, one := range r.all {
		if before != nil && (one.start.Before(before.end.Add(-slack)) || one.token <= before.token) {
			r.t.Errorf("%+v led though %+v still did", *one, *before)
		}
		if before == nil || one.end.After(before.end) {
			before = one
		}
	}
}

// candidate stands, leads for a while and resigns, until ctx ends.
func candidate(ctx context.Context, t *testing.T, e *zksync.Election, who string, r *terms, pick *rand.Rand, stay time.Duration) {
	for {
		lead, err := e.Campaign(ctx)
		if err != nil {
			if ctx.Err() == nil {
				t.Errorf("%s campaigns: %v", who, err)
			}
			return
		}
		r.begin(who, lead)
		rest := time.NewTimer(time.Duration(pick.Int64N(int64(stay))))
		select {
		case <-lead.Done():
		case <-rest.C:
		}
		rest.Stop()
		if err := e.Resign(); err != nil && !errors.Is(err, zksync.ErrLost) {
			t.Errorf("%s resigns: %v", who, err)
		}
	}
}

// A context of leadership ends before the next one begins, under faults that a seed chooses.
func TestElectionNeverHasTwoLeaders(t *testing.T) {
	seeds := bounds.Size(4, 10)
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			bounds.Bubble(t, func(t *testing.T) { electUnderFaults(t, uint64(seed)) })
		})
	}
}

func electUnderFaults(t *testing.T, seed uint64) {
	pick := rand.New(rand.NewPCG(seed, 20))
	srv := zksynctest.Start(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := &terms{t: t}
	var managers []*session.Manager
	var wg sync.WaitGroup
	for i := range 20 {
		m := srv.Connect(t, session.WithTimeout(4*time.Second))
		managers = append(managers, m)
		e := zksync.NewElection(m, "/master", zksync.WithID(fmt.Sprint(i)))
		own := rand.New(rand.NewPCG(seed, uint64(i)))
		wg.Go(func() { candidate(ctx, t, e, fmt.Sprint(i), r, own, 3*time.Second) })
	}
	for range 60 {
		time.Sleep(time.Duration(pick.Int64N(int64(2 * time.Second))))
		live, cancel := context.WithTimeout(ctx, time.Second)
		s, err := managers[pick.IntN(len(managers))].Session(live)
		cancel()
		if err != nil {
			continue
		}
		switch pick.IntN(6) {
		case 0:
			srv.Disconnect(s.ID())
		case 1:
			srv.Partition(s.ID())
			length := time.Duration(pick.Int64N(int64(10 * time.Second)))
			time.AfterFunc(length, func() { srv.Heal(s.ID()) })
		case 2:
			if err := srv.Restart(); err != nil {
				t.Error(err)
			}
		case 3, 4:
			moments := []zksynctest.Moment{zksynctest.BeforeCommit, zksynctest.AfterCommit, zksynctest.BeforeReply}
			codes := []zksynctest.OpCode{zkserver.OpMulti, zkserver.OpDelete, zkserver.OpGetChildren2, zkserver.OpGetData}
			srv.Inject(zksynctest.Fault{Op: codes[pick.IntN(len(codes))], At: moments[pick.IntN(len(moments))], Do: zksynctest.Disconnect})
		case 5:
			srv.Freeze()
			time.Sleep(time.Duration(pick.Int64N(int64(2 * time.Second))))
			srv.Thaw()
		}
	}
	time.Sleep(20 * time.Second) // the last partitions heal
	cancel()
	wg.Wait()
	r.check(0)
	if len(r.all) < 20 {
		t.Errorf("only %d terms", len(r.all))
	}
	synctest.Wait()
	if left, _ := srv.Children("/master"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A context of leadership ends before the next one begins, also when leaders are killed. On real servers the clocks of
// leaders are the one of this machine, but the end of a context is seen a little later than it happens.
func TestElectionOverKilledLeaders(t *testing.T) {
	bounds.Long(t)
	ens := zksynctest.RealZooKeeper(t, 3)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := &terms{t: t}
	var wg sync.WaitGroup
	for i := range 20 {
		e := zksync.NewElection(ens.Connect(t, session.WithTimeout(4*time.Second)), "/master", zksync.WithID(fmt.Sprint(i)))
		own := rand.New(rand.NewPCG(7, uint64(i)))
		wg.Go(func() { candidate(ctx, t, e, fmt.Sprint(i), r, own, 50*time.Millisecond) })
	}
	for range 3 {
		leader := ens.WaitLeader()
		ens.Kill(leader)
		ens.WaitLeader(leader)
		ens.Restart(leader)
		ens.WaitReady()
	}
	cancel()
	wg.Wait()
	r.check(0)
	if len(r.all) < 20 {
		t.Errorf("only %d terms", len(r.all))
	}
}

// Lost connections and restarts within the lease do not end leadership.
func TestLeadershipSurvivesWhatTheLeaseCovers(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		m := srv.Connect(t)
		lead, err := zksync.NewElection(m, servers.Path(t)).Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s := live(t, m)
		for range 3 {
			srv.Disconnect(t, s.ID())
			if err := s.Sync(t.Context(), "/"); err != nil {
				t.Fatal(err)
			}
		}
		if lead.Err() != nil {
			t.Errorf("a dropped connection ended leadership: %v", context.Cause(lead))
		}
	})
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		lead, err := zksync.NewElection(srv.Connect(t), "/master").Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		srv.Stop()
		time.Sleep(4 * time.Second)
		if err := srv.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if lead.Err() != nil {
			t.Errorf("a restart within the lease ended leadership: %v", context.Cause(lead))
		}
	})
}

// The context of a leader in a partition ends before another candidate leads.
func TestPartitionedLeaderEndsBeforeTheNextBegins(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t)
		lead, err := zksync.NewElection(m, "/master").Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		next := campaign(t, zksync.NewElection(srv.Connect(t), "/master"))
		synctest.Wait()
		began := time.Now()
		srv.Partition(live(t, m).ID())
		<-lead.Done()
		ended := time.Since(began)
		<-next
		taken := time.Since(began)
		if ended >= taken || taken > 15*time.Second || !errors.Is(context.Cause(lead), zksync.ErrLost) {
			t.Errorf("leadership ended after %v with %v; the next began after %v", ended, context.Cause(lead), taken)
		}
	})
}

// When a candidate dies only the two candidates behind it are notified, and the next leader sends no request.
func TestDeathInLineWakesItsFollowersOnly(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		var sessions []int64
		for range 10 {
			m := srv.Connect(t)
			campaign(t, zksync.NewElection(m, "/master"))
			synctest.Wait()
			sessions = append(sessions, live(t, m).ID())
		}
		for _, dead := range []int{4, 0} {
			srv.ResetOps()
			if err := srv.ExpireSession(sessions[dead]); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			for _, op := range srv.Ops() {
				i := slices.Index(sessions, op.Session)
				if op.Code != zkserver.OpPing && op.Code != zkserver.OpConnect && op.Code != zkserver.OpSync && !provesTheSession(op) && (i <= dead || i > dead+2) && i != dead {
					t.Errorf("candidate %d was woken by the death of candidate %d: %v", i, dead, op)
				}
			}
		}
	})
}

// Campaign fails with ErrBusy while the value campaigns or leads, Resign without leadership is ErrNotHeld, no Resign is
// due after a loss, and the value can be used again after any end.
func TestElectionMisuse(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t)
		e := zksync.NewElection(m, "/master")
		if err := e.Resign(); !errors.Is(err, zksync.ErrNotHeld) {
			t.Errorf("Resign without leading: %v", err)
		}
		if _, err := e.Campaign(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Campaign(t.Context()); !errors.Is(err, zksync.ErrBusy) {
			t.Errorf("Campaign while leading: %v", err)
		}
		if err := e.Resign(); err != nil {
			t.Error(err)
		}
		if err := e.Resign(); !errors.Is(err, zksync.ErrNotHeld) {
			t.Errorf("Resign twice: %v", err)
		}
		other := zksync.NewElection(m, "/master")
		if _, err := other.Campaign(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		waiting := make(chan error, 1)
		go func() {
			_, err := e.Campaign(ctx)
			waiting <- err
		}()
		synctest.Wait()
		if _, err := e.Campaign(t.Context()); !errors.Is(err, zksync.ErrBusy) {
			t.Errorf("Campaign while campaigning: %v", err)
		}
		cancel()
		if err := <-waiting; !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled Campaign: %v", err)
		}
		if err := other.Resign(); err != nil {
			t.Error(err)
		}
		lead, err := e.Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		srv.ExpireSession(live(t, m).ID())
		<-lead.Done()
		if _, err := e.Campaign(t.Context()); err != nil {
			t.Errorf("Campaign after a loss, without Resign: %v", err)
		}
		for _, bad := range []*zksync.Election{
			zksync.NewElection(m, "master"), zksync.NewElection(m, "/master", zksync.WithID("")),
			zksync.NewElection(m, "/master", zksync.WithStopTimeout(0)), zksync.NewElection(m, "/master", nil),
		} {
			if _, err := bad.Campaign(t.Context()); !errors.Is(err, zksync.ErrInvalidOption) && !errors.Is(err, session.ErrInvalidPath) {
				t.Errorf("a bad constructor call: %v", err)
			}
			observed := bad.Observe(t.Context())
			if _, ok := <-observed.Events(); ok {
				t.Error("observed something")
			}
			if err := observed.Err(); !errors.Is(err, zksync.ErrInvalidOption) && !errors.Is(err, session.ErrInvalidPath) {
				t.Errorf("observing by a bad constructor call: %v", err)
			}
		}
	})
}

// A Campaign that is cancelled at any step leads nothing and leaves no znode.
func TestCampaignCancelledAtEveryStep(t *testing.T) {
	moments := []zksynctest.Moment{zksynctest.BeforeCommit, zksynctest.AfterCommit, zksynctest.BeforeReply}
	for _, contended := range []bool{false, true} {
		for step := 1; step <= 8; step++ {
			for _, at := range moments {
				bounds.Bubble(t, func(t *testing.T) {
					srv := zksynctest.Start(t)
					m := srv.Connect(t)
					e := zksync.NewElection(m, "/master")
					other := zksync.NewElection(srv.Connect(t), "/master")
					if contended {
						if _, err := other.Campaign(t.Context()); err != nil {
							t.Fatal(err)
						}
					}
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					in := srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Nth: step, At: at, Do: zksynctest.Call(cancel)})
					ended := make(chan error, 1)
					go func() {
						_, err := e.Campaign(ctx)
						ended <- err
					}()
					synctest.Wait()
					in.Remove()
					cancel()
					if err := <-ended; err == nil {
						if err := e.Resign(); err != nil {
							t.Errorf("step %d, %v: Resign: %v", step, at, err)
						}
					} else if !errors.Is(err, context.Canceled) {
						t.Errorf("step %d, %v: %v", step, at, err)
					}
					if contended {
						if err := other.Resign(); err != nil {
							t.Error(err)
						}
					}
					synctest.Wait()
					if left, _ := srv.Children("/master"); len(left) > 0 {
						t.Errorf("step %d, %v: left behind: %v", step, at, left)
					}
					if _, err := e.Campaign(t.Context()); err != nil {
						t.Errorf("step %d, %v: the next Campaign: %v", step, at, err)
					}
				})
			}
		}
	}
}

// A candidate whose session ends between the grant and the return of Campaign campaigns again or returns a context that
// has ended.
func TestSessionLostBetweenWinningAndReturning(t *testing.T) {
	for _, at := range []zksynctest.Moment{zksynctest.AfterCommit, zksynctest.BeforeReply} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			m := srv.Connect(t)
			id := live(t, m).ID()
			srv.Inject(zksynctest.Fault{Session: id, Op: zkserver.OpMulti, At: at, Do: zksynctest.Call(func() {
				if err := srv.ExpireSession(id); err != nil {
					t.Error(err)
				}
			})})
			e := zksync.NewElection(m, "/master")
			lead, err := e.Campaign(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			token, _ := zksync.Token(lead)
			if leader, err := e.Leader(t.Context()); (err == nil && leader.Token == token) != (lead.Err() == nil) {
				t.Errorf("leader %+v, error %v; our token %d, our context %v", leader, err, token, context.Cause(lead))
			}
			if lead.Err() != nil {
				if !errors.Is(context.Cause(lead), zksync.ErrLost) {
					t.Errorf("leadership ended with %v", context.Cause(lead))
				}
				if _, err := e.Campaign(t.Context()); err != nil {
					t.Errorf("the next Campaign: %v", err)
				}
			}
		})
	}
}

// With WithStopTimeout, Run gives leadership up before its function has returned, and returns ErrStillRunning.
func TestStopTimeout(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		finish := make(chan struct{})
		defer close(finish)
		ctx, cancel := context.WithCancel(t.Context())
		e := zksync.NewElection(srv.Connect(t), "/master", zksync.WithStopTimeout(time.Minute))
		ran := make(chan error, 1)
		go func() {
			ran <- e.Run(ctx, func(ctx context.Context) error {
				<-ctx.Done()
				<-finish
				return nil
			})
		}()
		synctest.Wait()
		next := campaign(t, zksync.NewElection(srv.Connect(t), "/master"))
		stopped := time.Now()
		cancel()
		if err := <-ran; !errors.Is(err, zksync.ErrStillRunning) || time.Since(stopped) != time.Minute {
			t.Errorf("Run returned %v after %v", err, time.Since(stopped))
		}
		<-next
	})
}

// Run campaigns again after a loss, and ends with the result of a function that returns by itself.
func TestRunCampaignsAgainAfterALoss(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		enough := errors.New("enough")
		var tokens []int64
		err := zksync.NewElection(m, "/master").Run(t.Context(), func(ctx context.Context) error {
			token, _ := zksync.Token(ctx)
			tokens = append(tokens, token)
			if len(tokens) == 3 {
				return enough
			}
			srv.ExpireSession(live(t, m).ID())
			<-ctx.Done()
			return errors.New("interrupted")
		})
		if !errors.Is(err, enough) || len(tokens) != 3 || !slices.IsSorted(tokens) {
			t.Errorf("Run returned %v after the terms %v", err, tokens)
		}
		if left, _ := srv.Children("/master"); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
}

// The znodes of an Election are named as in Curator's LeaderLatch, and Leader returns ErrNoLeader without
// candidates.
func TestElectionLayoutIsCurators(t *testing.T) {
	srv := zksynctest.Start(t)
	e := zksync.NewElection(srv.Connect(t), "/master", zksync.WithID("node-1"))
	if _, err := e.Campaign(t.Context()); err != nil {
		t.Fatal(err)
	}
	names, _ := srv.Children("/master")
	layout := regexp.MustCompile(`^_c_[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}-latch-[0-9]{10}$`)
	if len(names) != 1 || !layout.MatchString(names[0]) {
		t.Fatalf("the candidate's znode: %q", names)
	}
	if data, _ := srv.Get("/master/" + names[0]); string(data) != "node-1" {
		t.Errorf("its data: %q", data)
	}
	// A LeaderLatch of Curator's, as it would stand behind us.
	if err := srv.Create("/master/_c_6a1c1f0e-6ff2-4a6e-9f6c-0c8f3c1c7f55-latch-0000000001", []byte("jvm-1")); err != nil {
		t.Fatal(err)
	}
	all, err := e.Candidates(t.Context())
	if err != nil || len(all) != 2 || all[0].ID != "node-1" || all[1].ID != "jvm-1" {
		t.Errorf("candidates %+v, error %v", all, err)
	}
	seen := e.Observe(t.Context()).Events()
	if c := <-seen; c.ID != "node-1" {
		t.Errorf("observed %+v", c)
	}
	if err := e.Resign(); err != nil {
		t.Fatal(err)
	}
	if c := <-seen; c.ID != "jvm-1" {
		t.Errorf("observed %+v", c)
	}
}

// Run reports an invalid option at once, also while there is no session.
func TestElectionWithInvalidOptions(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		link := srv.NewLink(t)
		m := link.Connect(t)
		s := live(t, m)
		link.Cut()
		<-s.Done()
		e := zksync.NewElection(m, "/master", zksync.WithStopTimeout(0))
		err := e.Run(within(t, time.Minute), func(context.Context) error { return nil })
		if !errors.Is(err, zksync.ErrInvalidOption) {
			t.Errorf("Run: %v, want ErrInvalidOption", err)
		}
	})
}
