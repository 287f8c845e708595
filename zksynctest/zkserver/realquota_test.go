package zkserver_test

import (
	"fmt"

	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// enforcing enables the hard limits of quotas.
var enforcing = []zksynctest.RealOption{zksynctest.RealProperty("enforceQuota", "true")}

// quotas tests requests up to hard limits and beyond.
func (s *script) quotas() {
	r := s.connect(s.e.Followers()[0], nil)
	for _, path := range []string{"/q", "/zookeeper/quota/q"} {
		s.ask("create "+path, r, zkserver.OpCreate, createRec(path, "", 0))
	}
	limits := func(op zkserver.OpCode, text string) {
		path := "/zookeeper/quota/q/zookeeper_limits"
		body := createRec(path, text, 0)
		if op == zkserver.OpSetData {
			body = setTo(path, text)
		}
		s.ask("limits "+text, r, op, body)
	}
	limits(zkserver.OpCreate, "count=-1,bytes=-1=;byteHardLimit=10;countHardLimit=3")
	s.ask("stats", r, zkserver.OpCreate, createRec("/zookeeper/quota/q/zookeeper_stats", "", 0))

	s.ask("data up to the limit", r, zkserver.OpSetData, setTo("/q", "1234567890"))
	s.ask("a byte too many", r, zkserver.OpSetData, setTo("/q", "12345678901"))
	s.ask("a byte too many in another znode", r, zkserver.OpCreate, createRec("/q/a", "1", 0))
	s.ask("less", r, zkserver.OpSetData, setTo("/q", "12"))
	create := func(path string) []byte { return sub(zkserver.OpCreate, createRec(path, "", 0)) }
	p := r.call(zkserver.OpMulti, multi(create("/q/a"), create("/q/b"), create("/q/c")))
	s.note("a multi of three where two are left: code %d, body %x", p.code, p.b)
	s.ask("one more", r, zkserver.OpCreate, createRec("/q/d", "", 0))
	p = r.call(zkserver.OpMulti, multi(sub(zkserver.OpDelete, rec{}.str("/q/a").i32(-1)), create("/q/e")))
	s.note("a multi that makes room for itself: code %d, body %x", p.code, p.b)
	s.ask("data where there are too many znodes", r, zkserver.OpSetData, setTo("/q/b", "1"))
	limits(zkserver.OpSetData, "count=-1,bytes=-1=;byteHardLimit=1;countHardLimit=9")
	s.ask("an empty znode where there are too many bytes", r, zkserver.OpCreate, createRec("/q/d", "", 0))
	s.ask("less where there are too many bytes", r, zkserver.OpSetData, setTo("/q", "1"))
	s.ask("other data of the same length", r, zkserver.OpSetData, setTo("/q", "34"))
	p = r.call(zkserver.OpGetData, rec{}.str("/zookeeper/quota/q/zookeeper_stats").flag(false))
	s.note("stats %s", fmt.Sprintf("%.40s", p.str()))
}
