package zksync_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// throttled is the code by which a server says that it has set a request aside
// without looking at it.
const throttled = -127

// heartbeat reports whether a request may serve to keep a session proven.
func heartbeat(op zkserver.Op) bool {
	return op.Code == zkserver.OpPing || op.Code == zkserver.OpSync || commits(op)
}

// A primitive does not notice that one of its requests is throttled, once or twice in a row: the call and the end of
// its hold return as without the throttling. To see this test fail, take -127 out of the table of session.ClassOf.
func TestThrottledOnce(t *testing.T) {
	t.Parallel()
	for _, c := range blockingCalls {
		t.Run(c.name, func(t *testing.T) {
			for times := 1; times <= bounds.Size(1, 2); times++ {
				for step := 1; throttledAt(t, c.play, c.fails, step, times) && !t.Failed(); step++ {
				}
			}
		})
	}
}

// throttledAt has the request of that number throttled, and reports whether there
// is such a request.
func throttledAt(t *testing.T, play func(*stage) play, fails []error, step, times int) (hit bool) {
	t.Helper()
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		st := newStage(t, srv)
		p := play(st)
		synctest.Wait()
		injected := srv.Inject(zksynctest.Fault{
			Session: live(t, st.m).ID(), Nth: step, Times: times, Do: zksynctest.Error(throttled),
			Match: func(op zkserver.Op) bool { return op.Code != zkserver.OpPing },
		})
		r := begin(t.Context(), st, p)
		synctest.Wait()
		if p.release != nil {
			time.Sleep(time.Second) // for the throttled requests
			p.release()
		}
		if err, ok := r.result(5 * time.Second); ok {
			isExpected := slices.ContainsFunc(fails, func(fail error) bool { return errors.Is(err, fail) })
			if err != nil && !isExpected {
				t.Error("the call has failed:", err)
			}
			r.finish(err)
			hit = injected.Count() > 0
			st.checkNothing()
		}
		if t.Failed() {
			t.Logf("request %d was throttled %d times", step, times)
		}
	})
	return hit
}

// A call whose requests are throttled all the time waits until its ctx ends, asks
// more and more rarely, and leaves nothing behind once the server answers again.
func TestThrottledUntilCtxEnds(t *testing.T) {
	t.Parallel()
	for _, c := range blockingCalls {
		t.Run(c.name, func(t *testing.T) {
			for step := 1; throttledFrom(t, c.play, c.fails, step) && !t.Failed(); step++ {
			}
		})
	}
}

// throttledFrom has all requests throttled from that number on, and reports whether
// there is such a request.
func throttledFrom(t *testing.T, play func(*stage) play, fails []error, step int) (hit bool) {
	t.Helper()
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		st := newStage(t, srv)
		p := play(st)
		synctest.Wait()
		id := live(t, st.m).ID()
		// Heartbeats are let through: whether a session outlives their loss is
		// tested elsewhere.
		injected := srv.Inject(zksynctest.Fault{
			Session: id, Nth: step, Times: -1, Do: zksynctest.Error(throttled),
			Match: func(op zkserver.Op) bool { return !heartbeat(op) },
		})
		const patience = time.Minute
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		srv.ResetOps()
		r := begin(ctx, st, p)
		synctest.Wait()
		if p.release != nil {
			time.Sleep(time.Second)
			p.release()
		}
		if err, ok := r.result(patience + 2*time.Second); ok {
			isExpected := slices.ContainsFunc(fails, func(fail error) bool { return errors.Is(err, fail) })
			if err != nil && !isExpected && !errors.Is(err, context.DeadlineExceeded) {
				t.Error("the call has failed:", err)
			}
			// Each call that goes on makes at most one request a second, after some
			// at first.
			const most = 4 * 75
			if n := injected.Count(); n > most {
				t.Errorf("%d requests in %v, want at most %d", n, patience, most)
			}
			hit = injected.Count() > 0
			injected.Remove()
			if err == nil {
				time.Sleep(2 * time.Second) // for the removals that are throttled
			}
			r.finish(err)
			st.checkNothing()
		}
		if t.Failed() {
			t.Logf("all requests from the %dth on were throttled", step)
		}
	})
	return hit
}

// The end of a hold returns, without an error, while the server throttles all
// requests, and the hold ends as soon as the server answers again. Only a Member tells
// that it was not removed within the session timeout.
func TestThrottledRelease(t *testing.T) {
	t.Parallel()
	for _, c := range blockingCalls {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				st := newStage(t, srv)
				p := c.play(st)
				synctest.Wait()
				r := begin(t.Context(), st, p)
				synctest.Wait()
				if p.release != nil {
					p.release()
				}
				err, ok := r.result(5 * time.Second)
				if !ok || err != nil {
					return // tested above
				}
				injected := srv.Inject(zksynctest.Fault{
					Session: live(t, st.m).ID(), Times: -1, Do: zksynctest.Error(throttled),
					Match: func(op zkserver.Op) bool { return !heartbeat(op) },
				})
				go func() {
					time.Sleep(time.Minute)
					injected.Remove()
				}()
				finished := make(chan struct{})
				go func() {
					defer close(finished)
					if err := r.end(nil); err != nil && !strings.Contains(err.Error(), "not removed within 10s") {
						t.Error("the end of the hold:", err)
					}
				}()
				select {
				case <-finished:
				case <-time.After(2 * time.Minute):
					t.Error("the end of the hold has not returned")
					<-finished
				}
				time.Sleep(time.Minute)
				st.checkNothing()
				st.checkQuiet()
			})
		})
	}
}
