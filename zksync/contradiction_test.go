package zksync_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// Even if the answers of a server contradict each other, no call repeats a request
// again and again without a pause: the call returns, at the latest when its ctx ends.
// To see this test fail, drop the pause of Session.makeDir, of view.watchDir, of view.listTracked or of contender.wait.
func TestContradictoryAnswers(t *testing.T) {
	t.Parallel()
	isRead := func(op zkserver.Op) bool {
		switch op.Code {
		case zkserver.OpExists, zkserver.OpGetData, zkserver.OpGetChildren2, zkserver.OpMultiRead:
			return true
		}
		return false
	}
	all := func(zkserver.Op) bool { return true }
	only := func(kind zkserver.OpCode) func(zkserver.Op) bool {
		return func(op zkserver.Op) bool { return op.Code == kind }
	}
	for i, c := range blockingCalls {
		for j, lie := range []struct {
			what    string
			code    zkserver.Code
			matches func(zkserver.Op) bool
		}{
			{"nothing exists", -101, all},
			{"everything exists", -110, all},
			{"every version is wrong", -103, all},
			{"no directory is empty", -111, all},
			{"an error without a name", -999, all},
			{"nothing is shown", -101, isRead},
			{"nothing can be created in what is shown", -101, func(op zkserver.Op) bool { return !isRead(op) }},
			{"what is not shown exists", -110, func(op zkserver.Op) bool { return !isRead(op) }},
			{"what is shown has another version", -103, func(op zkserver.Op) bool { return !isRead(op) }},
			{"what is listed cannot be read", -101, only(zkserver.OpGetData)},
			{"what can be read is not listed", -101, only(zkserver.OpGetChildren2)},
			{"what is listed cannot be read in one request", -101, only(zkserver.OpMultiRead)},
			{"what can be read does not exist", -101, only(zkserver.OpExists)},
		} {
			if !chosen(i, j, 3) {
				continue
			}
			t.Run(c.name+", "+lie.what, func(t *testing.T) {
				for step := 1; contradictedFrom(t, c.play, lie.code, lie.matches, step) && !t.Failed(); step++ {
				}
			})
		}
	}
}

// contradictedFrom has all requests that match, from that number on, answered with a
// code, and reports whether there is such a request.
func contradictedFrom(t *testing.T, play func(*stage) play, code zkserver.Code, matches func(zkserver.Op) bool, step int) (hit bool) {
	t.Helper()
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		st := newStage(t, srv)
		p := play(st)
		st.lies = true
		synctest.Wait()
		const patience, most = time.Minute, 400
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		asked := 0
		injected := srv.Inject(zksynctest.Fault{
			Session: live(t, st.m).ID(), Nth: step, Times: -1, Do: zksynctest.Error(code),
			Match: func(op zkserver.Op) bool {
				if heartbeat(op) || !matches(op) {
					return false
				}
				asked++ // a call that spins stops the clock of the bubble
				return asked < 3*most
			},
		})
		r := begin(ctx, st, p)
		// The release comes late, so that the call also waits for others while the answers are wrong.
		time.Sleep(patience / 2)
		if p.release != nil {
			p.release()
		}
		err, ok := r.result(patience + 5*time.Second)
		if !ok {
			cancel()
			err = <-r.done
		}
		if n := injected.Count(); n > most {
			t.Errorf("%d requests in %v", n, patience)
		}
		hit = injected.Count() > 0
		injected.Remove()
		_ = r.end(err) // which may fail as well
		if t.Failed() {
			t.Logf("all requests from the %dth on that match were answered %d", step, code)
		}
	})
	return hit
}
