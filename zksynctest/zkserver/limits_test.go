package zkserver_test

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// withBig starts a server with a znode /big of n bytes.
func withBig(t testing.TB, cfg zkserver.Config, n int) *zkserver.Server {
	t.Helper()
	s := start(t, cfg)
	if err := s.Create("/big", make([]byte, n)); err != nil {
		t.Fatal(err)
	}
	return s
}

// readsOf builds a request that reads the data of path n times.
func readsOf(path string, n int) rec {
	subs := make([]rec, n)
	for i := range subs {
		subs[i] = sub(zkserver.OpGetData, rec{}.str(path).flag(false))
	}
	return multi(subs...)
}

// A request of 48 KB that reads a megabyte 3,000 times ends the connection without an answer, costs
// about MaxAnswer bytes, and is logged. An answer of exactly MaxAnswer bytes is delivered. The
// lines to break are the comparisons with MaxAnswer in multiRead and in execute.
func TestAnAnswerThatIsTooLong(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		var log lines
		const answer = 16 + 3*(9+4+100_000+68) + 9
		s := withBig(t, zkserver.Config{MaxAnswer: answer, Logf: log.logf}, 100_000)
		other := session(t, s, 40*time.Second)
		r := session(t, s, 40*time.Second)
		if p := r.call(zkserver.OpMultiRead, readsOf("/big", 3)); p.code != 0 || 16+len(p.b) != answer {
			t.Fatalf("%v, %d bytes, want %d", p.code, 16+len(p.b), answer)
		}
		before := allocated()
		r.send(zkserver.OpMultiRead, readsOf("/big", 3000))
		r.closed()
		synctest.Wait()
		if n := allocated() - before; n > 16<<20 {
			t.Errorf("it took %d bytes of memory to refuse", n)
		}
		r = r.again(s).welcome()
		r.send(zkserver.OpMultiRead, append(rec(nil), readsOf("/big", 4)...))
		r.closed()
		other.want(0, zkserver.OpPing, nil)
		got := log.all()
		if len(got) != 1 || !strings.Contains(got[0], "(Config.MaxAnswer)") {
			t.Errorf("%q", got)
		}
	})
}

// A write whose answer is too long is carried out.
func TestAWriteWithALongAnswer(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		s := start(t, zkserver.Config{MaxAnswer: 1024})
		r := session(t, s, 40*time.Second)
		long := "/" + strings.Repeat("x", 2000)
		r.send(zkserver.OpCreate, createRec(long, "", 0))
		r.closed()
		if _, ok := s.Get(long); !ok {
			t.Error("it was not created")
		}
	})
}

// A connection with more than MaxQueued bytes of queued events is closed and its queue is freed at
// once, and no other client waits. The line to break is the call of checkQueue in Notify.
func TestEventsForAPeerThatDoesNotRead(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		var log lines
		s := start(t, zkserver.Config{MaxQueued: 1 << 20, Logf: log.logf})
		slow, other := session(t, s, 40*time.Second), session(t, s, 40*time.Second)
		slow.addWatch("/", recursiveMode)
		begin := time.Now()
		for range 60_000 { // 32 bytes and the path for each event; the pipe holds a quarter of a megabyte
			other.want(0, zkserver.OpSetData, setRec("/"))
		}
		if d := time.Since(begin); d != 0 {
			t.Errorf("the writer waited for %v", d)
		}
		synctest.Wait()
		if n := s.Queued(); n != 0 {
			t.Errorf("%d bytes wait", n)
		}
		_ = slow.nc.SetReadDeadline(time.Now().Add(time.Second))
		if n, err := io.Copy(io.Discard, slow.nc); err != nil || n > 1<<20 {
			t.Errorf("the connection is there after %d bytes: %v", n, err)
		}
		if got := log.all(); len(got) != 1 || !strings.Contains(got[0], "(Config.MaxQueued)") {
			t.Errorf("%q", got)
		}
		// The session is still alive, and the client can set its watches again.
		slow.again(s).welcome().addWatch("/", recursiveMode)
	})
}

// For a client that sends requests and reads no answers, the server holds no more than MaxQueued
// bytes. The server resumes at once when the client reads, and a client that reads loses no answer,
// however far its requests are ahead. The line to break is the call of awaitReader in readLoop.
func TestAnswersForAPeerThatDoesNotRead(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		s := withBig(t, zkserver.Config{MaxQueued: 4 << 20}, 500_000)
		r, other := session(t, s, 30*time.Second), session(t, s, 40*time.Second)
		const requests = 100
		for range requests {
			r.send(zkserver.OpGetData, rec{}.str("/big").flag(false))
		}
		synctest.Wait()
		if n := s.Queued(); n < 1<<20 || n > 4<<20 {
			t.Errorf("%d bytes wait", n)
		}
		other.want(0, zkserver.OpGetData, rec{}.str("/big").flag(false))
		begin := time.Now()
		for i := range requests {
			if p := r.recv(); p.code != 0 || p.xid != int32(i+1) {
				t.Fatalf("answer %d: %d, %v", i, p.xid, p.code)
			}
		}
		if d := time.Since(begin); d != 0 {
			t.Errorf("it took %v", d)
		}
	})
}

// A client whose requests are held back because it reads slowly still touches its session, and the
// connection of a client that never reads is closed in the end. The line to break is the line with
// patience in awaitReader.
func TestASlowReaderKeepsItsSession(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		s := withBig(t, zkserver.Config{MaxQueued: 4 << 20}, 300_000)
		slow := session(t, s, 30*time.Second)
		const requests = 12 // 3.6 MB, 1 MB of which is queued at once
		for range requests {
			slow.send(zkserver.OpGetData, rec{}.str("/big").flag(false))
		}
		time.Sleep(70 * time.Second)
		if len(s.Sessions()) != 1 {
			t.Fatal("its session is over")
		}
		for range requests {
			slow.recv()
		}
		slow.want(0, zkserver.OpPing, nil)
		never := session(t, s, 30*time.Second)
		for range 30 {
			never.send(zkserver.OpGetData, rec{}.str("/big").flag(false))
		}
		time.Sleep(2 * time.Minute)
		if n := s.Queued(); n != 0 {
			t.Errorf("%d bytes wait", n)
		}
	})
}

// When too many bytes are queued for all clients together, only the connection with the most queued
// bytes is closed. The line to break is the call of overflow after the loop in checkQueue.
func TestMaxQueuedTotal(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		s := start(t, zkserver.Config{MaxQueuedTotal: 1 << 20})
		worst, bad := session(t, s, 30*time.Second), session(t, s, 30*time.Second)
		worst.addWatch("/", persistentMode)
		bad.addWatch("/zookeeper", persistentMode)
		// Each round queues 33 bytes for worst, and later 42 bytes for bad, and each pipe holds up
		// to a quarter of a megabyte. Both queues together exceed the limit, even if the pipes are
		// full; the queue of bad alone does not, even if its pipe is empty.
		const rounds = 24_500
		for _, path := range []string{"/", "/zookeeper"} {
			for range rounds {
				if err := s.Set(path, nil); err != nil {
					t.Fatal(err)
				}
			}
		}
		synctest.Wait()
		if n := s.Queued(); n == 0 || n > 1<<20 {
			t.Errorf("%d bytes wait", n)
		}
		for range rounds {
			if ev := bad.event(); ev.path != "/zookeeper" {
				t.Fatalf("%+v", ev)
			}
		}
		bad.want(0, zkserver.OpPing, nil)
		_ = worst.nc.SetReadDeadline(time.Now().Add(time.Second))
		if _, err := io.Copy(io.Discard, worst.nc); err != nil {
			t.Errorf("the connection for which most waits is there: %v", err)
		}
	})
}

// The operations that Ops remembers take at most OpsBytes. The latest operations are kept whole,
// and a single larger operation is kept. The line to break is the loop that forgets in opLog.add.
func TestOpsBytes(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		s := start(t, zkserver.Config{OpsBytes: 100_000})
		r := session(t, s, 0)
		for range 100 {
			r.want(zkserver.ErrNoNode, zkserver.OpGetData, rec{}.str("/"+strings.Repeat("x", 10_000)).flag(false))
		}
		got := s.Ops()
		if n := len(got); n != 9 {
			t.Fatalf("%d operations of 10,257 bytes each in 100,000", n)
		}
		for i, op := range got {
			if op.Xid != int32(92+i) || !op.Done || op.Err != -101 || len(op.Path) != 10_001 {
				t.Errorf("operation %d: xid %d, %v, %d, %d bytes", i, op.Xid, op.Done, op.Err, len(op.Path))
			}
		}
		r.want(zkserver.ErrNoNode, zkserver.OpGetData, rec{}.str("/"+strings.Repeat("x", 200_000)).flag(false))
		if got := s.Ops(); len(got) != 1 || got[0].Xid != 101 {
			t.Fatalf("%d operations, xid %d", len(got), got[0].Xid)
		}
		for range 1000 {
			r.want(0, zkserver.OpPing, nil)
		}
		if got := s.Ops(); len(got) != 100_000/256 || got[0].Xid != 1101-100_000/256+1 {
			t.Fatalf("%d operations from %d on", len(got), got[0].Xid)
		}
	})
}

// The operations of a multi count for OpsBytes.
func TestOpsOfAGreatMulti(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		s := start(t, zkserver.Config{OpsBytes: 100_000})
		r := session(t, s, 0)
		for range 5 {
			r.call(zkserver.OpMultiRead, readsOf("/no", 1000))
		}
		if got := s.Ops(); len(got) != 2 || len(got[1].Sub) != 1000 || got[1].Xid != 5 {
			t.Fatalf("%d operations of 43,256 bytes in 100,000", len(got))
		}
	})
}
