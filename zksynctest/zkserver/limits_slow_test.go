package zkserver_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A client that reads is not closed for bytes that are queued for another client whose connection
// is closed, recently or long ago by a partition. The line to break is the return after the loop in
// checkQueue.
func TestBytesOfClosedConnections(t *testing.T) {
	for _, partitioned := range []bool{false, true} {
		bounds.Bubble(t, func(t *testing.T) {
			s := withBig(t, zkserver.Config{MaxQueuedTotal: 1 << 20}, 400_000)
			slow, good, other := session(t, s, 30*time.Second), session(t, s, 30*time.Second), session(t, s, 30*time.Second)
			for range 3 {
				slow.send(zkserver.OpGetData, rec{}.str("/big").flag(false))
				synctest.Wait()
			}
			if partitioned {
				s.Partition(slow.id)
				if err := s.ExpireSession(slow.id); err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Second)
			} else if err := s.Disconnect(slow.id); err != nil {
				t.Fatal(err)
			}
			if n := s.Queued(); n < 800_000 {
				t.Fatalf("%d bytes wait for the closed connection", n)
			}
			for _, r := range []*raw{good, other} {
				r.send(zkserver.OpGetData, rec{}.str("/big").flag(false))
				synctest.Wait()
			}
			for _, r := range []*raw{good, other} {
				if p := r.recv(); p.code != 0 {
					t.Error(p.code)
				}
			}
		})
	}
}

// A single answer above MaxQueued or MaxQueuedTotal is delivered. The line to break is the call of
// over in checkQueue.
func TestOneAnswerOverTheLimit(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		for _, cfg := range []zkserver.Config{{MaxQueued: 1 << 20}, {MaxQueuedTotal: 1 << 20}} {
			s := withBig(t, cfg, 2<<20)
			session(t, s, 30*time.Second).want(0, zkserver.OpGetData, rec{}.str("/big").flag(false))
		}
	})
}

// Clients that all pause for a second with outstanding requests get all answers: their requests are
// held back before the total limit is reached. The line to break is the line with keptBuffer in
// mayWait.
func TestManyClientsPause(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		var log lines
		// A 64th of the default limits.
		s := withBig(t, zkserver.Config{MaxQueued: 2 << 20, MaxQueuedTotal: 8 << 20, Logf: log.logf}, 16_000)
		var all []*raw
		for range 20 {
			r := session(t, s, 30*time.Second)
			for range 60 { // 960 KB; the pipe holds 256 KB of them
				r.send(zkserver.OpGetData, rec{}.str("/big").flag(false))
			}
			all = append(all, r)
		}
		time.Sleep(time.Second)
		if n := s.Queued(); n < 4<<20 || n > 8<<20 {
			t.Errorf("%d bytes wait: %q", n, log.all())
		}
		for _, r := range all {
			for range 60 {
				r.recv()
			}
		}
	})
}

// A client that reads continuously over a slow link gets all answers, and keeps its session. The
// lines to break are the lines with progress in awaitReader.
func TestASteadySlowReader(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		var log lines
		s := withBig(t, zkserver.Config{MaxQueued: 4 << 20, Logf: log.logf}, 500_000)
		r := session(t, s, 30*time.Second)
		const requests = 60
		for range requests {
			r.send(zkserver.OpGetData, rec{}.str("/big").flag(false))
		}
		got, want := 0, requests*(500_000+92)
		b := make([]byte, 40_000)
		for second := 1; got < want; second++ {
			if second%10 == 0 {
				r.send(zkserver.OpPing, nil) // like a real client
			}
			_ = r.nc.SetDeadline(time.Time{})
			n, err := r.nc.Read(b)
			if got += n; err != nil {
				t.Fatalf("%v after %d bytes of %d: %q", err, got, want, log.all())
			}
			time.Sleep(time.Second)
		}
		if len(s.Sessions()) != 1 {
			t.Error("its session is over")
		}
	})
}

// A client that reads continuously keeps its session while its pings are held back for longer than
// the session timeout. The line to break is the call of touchHeldBack in awaitReader.
func TestHeldBackForLong(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		s := start(t, zkserver.Config{MaxQueued: 4 << 20})
		r := session(t, s, 30*time.Second)
		r.addWatch("/", persistentMode)
		for range 90_000 { // 33 bytes each; requests are held back above 1 MiB
			if err := s.Set("/", nil); err != nil {
				t.Fatal(err)
			}
		}
		b := make([]byte, 40_000)
		for second := range 70 {
			if second%10 == 0 {
				r.send(zkserver.OpPing, nil)
			}
			_ = r.nc.SetDeadline(time.Time{})
			if _, err := r.nc.Read(b); err != nil {
				t.Fatalf("%v after %d s", err, second)
			}
			time.Sleep(time.Second)
		}
		if len(s.Sessions()) != 1 {
			t.Error("its session is over")
		}
	})
}
