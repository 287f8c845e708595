package zkserver_test

import (
	"time"

	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// throttling makes a server handle one request at a time, and refuse requests that have waited for
// more than 100 ms.
var throttling = []zksynctest.RealOption{zksynctest.RealJVM(
	"-Dzookeeper.request_throttle_max_requests=1",
	"-Dzookeeper.throttled_op_wait_time=100",
)}

// throttled has a write of one client wait for a commit, and requests of another client wait behind
// the write until they are throttled.
func (s *script) throttled() {
	leader, f := s.e.Leader(), s.e.Followers()
	writer, r := s.connect(leader, nil), s.connect(leader, nil)
	s.ask("create", writer, zkserver.OpCreate, createRec("/a", "", 0))
	if s.embedded != nil { // the embedded ensemble has no queue to wait in
		s.embedded.Inject(zkserver.Fault{Session: r.id, Do: zkserver.Delay(time.Second)})
		s.embedded.Inject(zkserver.Fault{Session: r.id, Times: -1, Do: zkserver.Throttle})
	}
	for _, i := range f {
		s.e.Pause(i)
	}
	write := writer.send(zkserver.OpSetData, setRec("/a"))
	time.Sleep(200 * time.Millisecond) // until the leader has proposed the write

	requests := []struct {
		what string
		op   zkserver.OpCode
		body []byte
	}{
		{"getData with a watch", zkserver.OpGetData, watchRec("/a")},
		{"setData", zkserver.OpSetData, setRec("/a")},
		{"create", zkserver.OpCreate, createRec("/new", "", 0)},
		{"multi", zkserver.OpMulti, multi(sub(zkserver.OpCreate, createRec("/new", "", 0)))},
		{"sync", zkserver.OpSync, rec{}.str("/")},
		{"setWatches", zkserver.OpSetWatches, rec{}.i64(0).strs("/a").strs().strs()},
		{"ping", zkserver.OpPing, nil},
	}
	xids := make([]int32, len(requests))
	for i, request := range requests {
		xids[i] = r.send(request.op, request.body)
	}
	time.Sleep(500 * time.Millisecond)
	for _, i := range f {
		s.e.Resume(i)
	}
	zxid := s.outcome("the write that the others wait for", writer, write, 10*time.Second)
	for i, request := range requests {
		got := s.outcome(request.what, r, xids[i], 10*time.Second)
		if request.op != zkserver.OpPing {
			s.note("it has the zxid of the latest transaction: %v", got == zxid)
		}
	}
	if s.embedded != nil {
		s.embedded.RemoveFaults()
	}
	next := s.ask("setData later", writer, zkserver.OpSetData, setRec("/a"))
	s.note("throttled writes take no zxid: %v", next == zxid+1)
	s.ask("no event comes before the answer to a ping", r, zkserver.OpPing, nil)
	s.ask("/new", r, zkserver.OpExists, existsRec("/new"))
	s.ask("close", r, zkserver.OpCloseSession, nil)
}
