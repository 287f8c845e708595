package zkserver_test

import (
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// Close leaves nothing of clients that were active while faults struck them. The test uses raw
// clients, because the stock client has data races when it reconnects.
func TestFaultsUnderLoad(t *testing.T) {
	for seed := range uint64(3) {
		bounds.Bubble(t, func(t *testing.T) {
			s := start(t, zkserver.Config{})
			if err := s.Create("/q", nil); err != nil {
				t.Fatal(err)
			}
			end := time.Now().Add(5 * time.Minute)
			var work sync.WaitGroup
			for i := range uint64(8) {
				work.Go(func() { churn(t, s, rand.New(rand.NewPCG(seed, i)), end) })
			}
			work.Go(func() { torment(s, rand.New(rand.NewPCG(seed, 100)), end) })
			work.Wait()
			// Sessions that were lost without a closeSession have expired by then.
			time.Sleep(time.Minute)
			if got := s.Sessions(); len(got) != 0 {
				t.Errorf("sessions left: %+v", got)
			}
			if dump := s.Dump(); strings.Contains(dump, "session=") || s.Watches() != 0 {
				t.Errorf("%d watches, tree\n%s", s.Watches(), dump)
			}
			if n := len(s.Ops()); n < 1000 {
				t.Errorf("only %d operations in all that time", n)
			}
		})
	}
}

// churn connects repeatedly until end, to the same session while it exists, and leaves ephemerals
// and watches.
func churn(t *testing.T, s *zkserver.Server, rng *rand.Rand, end time.Time) {
	var id int64
	var password string
	for time.Now().Before(end) {
		time.Sleep(time.Duration(rng.IntN(500)) * time.Millisecond)
		nc, err := s.Dial(t.Context(), "tcp", "127.0.0.1:2181")
		if err != nil {
			continue
		}
		r := &raw{t: t, nc: nc, patience: 3 * time.Second}
		pw := make([]byte, 16)
		copy(pw, password)
		hello := rec{}.i32(0).i64(0).i32(6000).i64(id).str(string(pw))
		_, _ = nc.Write(append(rec{}.i32(int32(len(hello))), hello...))
		if in, err := r.read(); err == nil {
			in.i64()
			id, password = in.i64(), in.str()
			if id != 0 {
				r.churn(rng, end)
			}
		}
		nc.Close()
	}
}

func (r *raw) churn(rng *rand.Rand, end time.Time) {
	for time.Now().Before(end) {
		op, body := zkserver.OpPing, rec(nil)
		switch rng.IntN(7) {
		case 0, 1:
			op, body = zkserver.OpCreate, createRec("/q/n-", "x", 3)
		case 2:
			op, body = zkserver.OpGetChildren2, watchRec("/q")
		case 3:
			op, body = zkserver.OpExists, watchRec("/q/n-0000000007")
		case 4:
			op, body = zkserver.OpSync, rec{}.str("/q")
		case 5:
			op, body = zkserver.OpMulti, multi(
				sub(zkserver.OpCreate, createRec("/q/m-", "", 3)),
				sub(zkserver.OpCheck, rec{}.str("/q").i32(int32(rng.IntN(2)))))
		}
		r.xid++
		body = append(rec{}.i32(r.xid, int32(op)), body...)
		if _, err := r.nc.Write(append(rec{}.i32(int32(len(body))), body...)); err != nil {
			return
		}
		for xid := int32(-1); xid == -1; {
			in, err := r.read()
			if err != nil {
				return
			}
			xid = in.i32()
		}
		time.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond)
	}
}

func torment(s *zkserver.Server, rng *rand.Rand, end time.Time) {
	ops := []zkserver.OpCode{0, zkserver.OpCreate, zkserver.OpMulti, zkserver.OpConnect, zkserver.OpPing}
	moments := []zkserver.Moment{zkserver.BeforeCommit, zkserver.AfterCommit, zkserver.BeforeReply, zkserver.OnWatch}
	for time.Now().Before(end) {
		wait := time.Duration(rng.IntN(4000)) * time.Millisecond
		var id int64
		if list := s.Sessions(); len(list) > 0 {
			id = list[rng.IntN(len(list))].ID
		}
		do := []zkserver.Action{zkserver.Drop, zkserver.Disconnect, zkserver.Delay(wait)}[rng.IntN(3)]
		s.Inject(zkserver.Fault{
			Op: ops[rng.IntN(len(ops))], At: moments[rng.IntN(len(moments))], Nth: rng.IntN(20), Do: do,
		})
		undo := func() {}
		switch rng.IntN(10) {
		case 0:
			_ = s.ExpireSession(id)
		case 1:
			_ = s.Disconnect(id)
		case 2:
			s.Partition(id)
			undo = func() { s.Heal(id) }
		case 3:
			s.Freeze()
			undo = s.Thaw
		case 4:
			s.Stop()
			undo = func() { _ = s.Start() }
		case 5:
			s.HangHandshake(true)
			undo = func() { s.HangHandshake(false) }
		case 6:
			s.Lag(id)
		case 7:
			s.CutFromLeader(id, true)
			undo = func() { s.CutFromLeader(id, false) }
		case 8:
			s.SwapSessionID(id)
		case 9:
			s.DelayEphemeralRemoval(wait)
		}
		time.Sleep(wait)
		undo()
	}
	s.DelayEphemeralRemoval(0)
}
