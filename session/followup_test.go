package session_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// provenFollowup returns a Followup that reads /a and /b, after the servers have shown that they know multiRead.
func provenFollowup(t *testing.T, m *session.Manager) *session.Followup {
	t.Helper()
	s := current(t, m)
	if _, err := s.MultiRead(t.Context(), session.ReadData("/")); err != nil {
		t.Fatal(err)
	}
	return s.NewFollowup([]session.Read{session.ReadData("/a")}, []session.Read{session.ReadData("/b"), session.ReadData("/")})
}

// creates returns the operations that create the znodes of provenFollowup.
func creates() []any {
	return []any{&zk.CreateRequest{Path: "/a", Data: []byte("data of a")}, &zk.CreateRequest{Path: "/b", Data: []byte("data of b")}}
}

// The reads of a Followup show the state after its transaction, on every server.
func TestFollowupShowsTheStateAfterTheTransaction(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		m := srv.Connect(t)
		s := current(t, m)
		dir := servers.Path(t)
		if err := s.MakeDir(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
		if _, err := s.MultiRead(t.Context(), session.ReadData(dir)); err != nil {
			t.Fatal(err)
		}
		path := dir + "/x"
		f := s.NewFollowup([]session.Read{session.ReadData(path), session.ReadData(dir)}, []session.Read{session.ReadData(path + "/none")})
		if _, err := f.Multi(t.Context(), &zk.CreateRequest{Path: path, Data: []byte("1")}); err != nil {
			t.Fatal(err)
		}
		results := f.Results(t.Context())
		if len(results) != 2 || string(results[0][0].Data) != "1" || results[0][1].Stat.NumChildren != 1 {
			t.Fatalf("the reads behind a create: %+v", results)
		}
		mustBe(t, results[1][0].Err, zk.ErrNoNode)
		for i := range 100 {
			if _, err := f.MultiOnce(t.Context(), 0, &zk.SetDataRequest{Path: path, Data: []byte{byte(i)}, Version: int32(i)}); err != nil {
				t.Fatal(err)
			}
			if results := f.Results(t.Context()); len(results) != 2 || results[0][0].Data[0] != byte(i) {
				t.Fatalf("the reads behind the change %d: %+v", i, results)
			}
		}
	})
}

// The reads of a Followup are sent before the answer to the transaction has arrived.
func TestFollowupNeedsNoRoundTrip(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		link := srv.NewLink(t)
		f := provenFollowup(t, link.Connect(t))
		link.Delay(50 * time.Millisecond)
		began := time.Now()
		if _, err := f.Multi(t.Context(), creates()...); err != nil {
			t.Fatal(err)
		}
		if results := f.Results(t.Context()); len(results) != 2 || string(results[1][0].Data) != "data of b" {
			t.Errorf("results %+v", results)
		}
		if took := time.Since(began); took > 110*time.Millisecond {
			t.Errorf("took %v, want one round trip, 100ms", took)
		}
	})
}

// A Followup has no results if the attempt in front of the reads was refused, though a later attempt has happened.
func TestFollowupOfARefusedAttempt(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		f := provenFollowup(t, connect(t, srv, three))
		srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Do: zksynctest.Error(-127)})
		if _, err := f.Multi(t.Context(), creates()...); err != nil {
			t.Fatal(err)
		}
		if results := f.Results(t.Context()); results != nil {
			t.Errorf("reads that were carried out before the transaction have results: %+v", results)
		}
	})
}

// A Followup has no results if the transaction has failed, or one of the reads has no result. It can be used again.
func TestFollowupWithoutResults(t *testing.T) {
	for name, fault := range map[string]zksynctest.Fault{
		"the transaction is refused":         {Op: zkserver.OpMulti, Do: zksynctest.Error(zkserver.ErrNoAuth)},
		"the answer is lost":                 {Op: zkserver.OpMulti, At: zksynctest.BeforeReply, Do: zksynctest.Disconnect},
		"the connection breaks at the reads": {Op: zkserver.OpMultiRead, Do: zksynctest.Disconnect},
		"a read is throttled":                {Op: zkserver.OpMultiRead, Do: zksynctest.Error(-127)},
		"the server lacks multiRead":         {Op: zkserver.OpMultiRead, Do: zksynctest.Error(zkserver.ErrUnimplemented)},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := connect(t, srv, three)
				s, f := current(t, m), provenFollowup(t, m)
				srv.Inject(fault)
				_, err := f.Multi(t.Context(), creates()...)
				if results := f.Results(t.Context()); results != nil {
					t.Errorf("results %+v, after %v", results, err)
				}
				for _, path := range []string{"/a", "/b"} {
					_ = s.Delete(t.Context(), path, -1)
				}
				if _, err := f.Multi(t.Context(), creates()...); err != nil {
					t.Fatal(err)
				}
				// A server that has said that it does not know the operation is not asked again.
				if results, lacks := f.Results(t.Context()), strings.Contains(name, "lacks"); (len(results) != 2) != lacks {
					t.Errorf("results %+v when it is used again", results)
				}
			})
		})
	}
}

// Results ends with ctx. The reads that nobody waits for any more are in flight until their answers, before which Manager.Close does not end.
func TestFollowupWithoutItsCaller(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three)
		f := provenFollowup(t, m)
		srv.Inject(zksynctest.Fault{Op: zkserver.OpMultiRead, Times: 2, Do: zksynctest.Delay(time.Second)})
		if _, err := f.Multi(t.Context(), creates()...); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if results := f.Results(ctx); results != nil || ctx.Err() == nil {
			t.Errorf("results %+v before the answer", results)
		}
		if st := m.Stats(); st.InFlight != 2 || st.Abandoned != 2 {
			t.Errorf("%d requests in flight, %d of them abandoned, want the 2 reads", st.InFlight, st.Abandoned)
		}
		began := time.Now()
		m.Close()
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("Close took %v", took)
		}
	})
}

// A Followup sends no reads to servers that may not know multiRead, none above the limit of WithMaxRequest, and none with an
// invalid path.
func TestFollowupWithoutReads(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three, session.WithMaxRequest(1<<10))
		s := current(t, m)
		small, large := []session.Read{session.ReadData("/a")}, make([]session.Read, 100)
		for i := range large {
			large[i] = session.ReadData("/a-path-of-some-length")
		}
		check := func(why string, f *session.Followup) {
			t.Helper()
			srv.ResetOps()
			if _, err := f.Multi(t.Context(), &zk.CreateRequest{Path: "/" + strings.ReplaceAll(why, " ", "-")}); err != nil {
				t.Fatal(err)
			}
			if results, n := f.Results(t.Context()), count(srv.Ops(), zkserver.OpMultiRead); results != nil || n > 0 {
				t.Errorf("%s: %d requests, with the results %+v", why, n, results)
			}
		}
		check("servers that may lack multiRead", s.NewFollowup(small))
		provenFollowup(t, m)
		check("a request that is too large", s.NewFollowup(small, large))
		check("an invalid path", s.NewFollowup(small, []session.Read{session.ReadData("a")}))
	})
}

// Answers that have arrived are the results, although ctx has ended.
func TestFollowupResultsAtTheEndOfTheContext(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		f := provenFollowup(t, connect(t, srv, three))
		if _, err := f.Multi(t.Context(), creates()...); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 100 {
			if f.Results(ctx) == nil {
				t.Fatal("answers that have arrived are not the results")
			}
		}
	})
}

// A Followup leaves out its reads rather than hold up other calls, when many requests are unanswered.
func TestGetBesideFollowups(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		const trip = 200 * time.Millisecond
		link := srv.NewLink(t)
		s := current(t, link.Connect(t))
		if _, err := s.MultiRead(t.Context(), session.ReadData("/")); err != nil {
			t.Fatal(err)
		}
		link.Delay(trip / 2)
		reads := slices.Repeat([][]session.Read{{session.ReadData("/")}}, 8)
		answered := make(chan bool)
		const followups = 128
		for i := range followups {
			go func() {
				f := s.NewFollowup(reads...)
				if _, err := f.Multi(t.Context(), &zk.CreateRequest{Path: fmt.Sprintf("/x%d", i)}); err != nil {
					t.Error(err)
				}
				answered <- f.Results(t.Context()) != nil
			}()
		}
		synctest.Wait()
		began := time.Now()
		if _, _, err := s.Get(t.Context(), "/"); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > trip+10*time.Millisecond {
			t.Errorf("a Get took %v, want a round trip, %v", took, trip)
		}
		n := 0
		for range followups {
			if <-answered {
				n++
			}
		}
		if n != 64 {
			t.Errorf("%d Followups had results, want 64, whose reads are 512 requests", n)
		}
	})
}

// Reads for which no caller waits count against the limit of unanswered requests whose callers have gone.
func TestFollowupsOfCallersThatHaveGone(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three, session.WithTimeout(time.Hour))
		s := current(t, m)
		if _, err := s.MultiRead(t.Context(), session.ReadData("/")); err != nil {
			t.Fatal(err)
		}
		reads := slices.Repeat([][]session.Read{{session.ReadData("/")}}, 8)
		srv.Freeze()
		for i := range 2000 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			if _, err := s.NewFollowup(reads...).Multi(ctx, &zk.CreateRequest{Path: fmt.Sprintf("/x%d", i)}); err == nil {
				t.Fatal("no error from a frozen server")
			}
			cancel()
		}
		srv.ResetOps()
		srv.Thaw()
		synctest.Wait()
		if n := count(srv.Ops(), zkserver.OpMulti) + count(srv.Ops(), zkserver.OpMultiRead); n > 1024+len(reads) {
			t.Errorf("the server got %d requests whose callers had gone, want 1024, and the last reads", n)
		}
	})
}
