package zkserver_test

import (
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// limit sets a quota for path like setquota of the stock clients.
func limit(r *raw, path, limits string) {
	r.t.Helper()
	r.create("/zookeeper/quota"+path, 0)
	r.want(0, zkserver.OpCreate, createRec("/zookeeper/quota"+path+"/zookeeper_limits", limits, 0))
	r.want(0, zkserver.OpCreate, createRec("/zookeeper/quota"+path+"/zookeeper_stats", "count=0,bytes=0", 0))
}

func setTo(path, data string) rec { return rec{}.str(path).str(data).i32(-1) }

// The server counts the znodes and bytes below a quota like a real server.
func TestQuotasAreKeptAccountOf(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 0)
		const stats = "/zookeeper/quota/q/zookeeper_stats"
		uses := func(want string) {
			t.Helper()
			if got, _ := s.Get(stats); string(got) != want {
				t.Fatalf("%q, want %q", got, want)
			}
		}
		r.want(0, zkserver.OpCreate, createRec("/q", "abc", 0))
		r.want(0, zkserver.OpCreate, createRec("/q/x", "12345", 0))
		r.want(0, zkserver.OpCreate, createRec("/qq", "12345", 0))
		limit(r, "/q", "count=2,bytes=3")
		uses("count=2,bytes=8")
		before := r.stat(stats)
		r.want(0, zkserver.OpCreate, createRec("/q/y", "123456789", 0))
		uses("count=3,bytes=17")
		r.want(0, zkserver.OpSetData, setTo("/q/y", "1"))
		uses("count=3,bytes=9")
		r.want(0, zkserver.OpDelete, deleteRec("/q/y"))
		uses("count=2,bytes=8")
		after := r.stat(stats)
		if before.mzxid != after.mzxid || before.version != after.version || after.dataLength != 15 {
			t.Errorf("%+v, before %+v", after, before)
		}
		p := r.want(0, zkserver.OpMulti, multi(
			sub(zkserver.OpCreate, createRec("/q/m", "12", 0)),
			sub(zkserver.OpCheck, rec{}.str("/").i32(77))))
		if codes := p.results(); codes[1] != int32(zkserver.ErrBadVersion) {
			t.Fatal(codes)
		}
		uses("count=2,bytes=8")
		other := session(t, s, 0)
		other.create("/q/e", 1)
		uses("count=3,bytes=8")
		other.want(0, zkserver.OpCloseSession, nil)
		uses("count=2,bytes=8")

		r.want(0, zkserver.OpSetData, setTo(stats, "count=2,bytes=8=;byteHardLimit=9;a=1"))
		r.create("/q/z", 0)
		uses("count=3,bytes=8=;a=1;byteHardLimit=9")
		r.want(0, zkserver.OpSetData, setTo(stats, "rubbish"))
		r.create("/q/zz", 0)
		uses("rubbish")
		r.want(0, zkserver.OpDelete, deleteRec(stats))
		r.create("/q/zzz", 0)
		r.create(stats, 0)
		uses("count=5,bytes=8")
		r.want(0, zkserver.OpDelete, deleteRec("/zookeeper/quota/q/zookeeper_limits"))
		r.create("/q/free", 0)
		uses("count=5,bytes=8")
		r.create("/zookeeper/quota/zookeeper_limits", 0) // a quota of no znode
		r.create("/zookeeper/quota/zookeeper_stats", 0)
	})
}

// A znode counts against the deepest quota above it, and against no other quota.
func TestTheDeepestQuotaCounts(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 0)
		for _, path := range []string{"/a", "/a/b"} {
			r.create(path, 0)
			limit(r, path, "count=9")
		}
		r.create("/a/b/c", 0)
		r.create("/a/c", 0)
		for path, want := range map[string]string{"/a": "count=3,bytes=0", "/a/b": "count=2,bytes=0"} {
			if got, _ := s.Get("/zookeeper/quota" + path + "/zookeeper_stats"); string(got) != want {
				t.Errorf("%s: %q, want %q", path, got, want)
			}
		}
	})
}

// Hard quotas refuse requests that exceed them if EnforceQuota is set; soft quotas refuse no
// requests.
func TestHardLimits(t *testing.T) {
	for _, enforce := range []bool{true, false} {
		bounds.Bubble(t, func(t *testing.T) {
			r := session(t, start(t, zkserver.Config{EnforceQuota: enforce}), 0)
			for _, path := range []string{"/soft", "/hard"} {
				r.create(path, 0)
			}
			limit(r, "/soft", "count=1,bytes=1")
			limit(r, "/hard", "count=-1,bytes=-1=;byteHardLimit=4;countHardLimit=3")
			exceeded := zkserver.ErrQuotaExceeded
			if !enforce {
				exceeded = 0
			}
			runAsks(t, r, []ask{
				{"a soft limit", zkserver.OpCreate, createRec("/soft/a", "abc", 0), 0},
				{"up to the limit", zkserver.OpCreate, createRec("/hard/a", "1234", 0), 0},
				{"a byte too many", zkserver.OpSetData, setTo("/hard", "5"), exceeded},
				{"less is always fine", zkserver.OpSetData, setTo("/hard/a", "123"), 0},
				{"the third", zkserver.OpCreate, createRec("/hard/b", "", 0), 0},
				{"one too many", zkserver.OpCreate, createRec("/hard/c", "", 0), exceeded},
			})
			if enforce { // the quota is checked before the version
				r.want(exceeded, zkserver.OpSetData, rec{}.str("/hard").str("5678").i32(77))
				// A limit of the number of znodes does not affect the data of existing znodes.
				r.want(0, zkserver.OpSetData, setTo("/zookeeper/quota/hard/zookeeper_limits", "count=-1,bytes=-1=;byteHardLimit=9;countHardLimit=1"))
				r.want(0, zkserver.OpSetData, setTo("/hard/b", "12"))
			}
		})
	}
}

// The operations of a multi are checked against the usage before the multi.
func TestHardLimitsWithinAMulti(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		r := session(t, start(t, zkserver.Config{EnforceQuota: true}), 0)
		r.create("/q", 0)
		limit(r, "/q", "count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=2")
		create := func(path string) []byte { return sub(zkserver.OpCreate, createRec(path, "", 0)) }
		r.want(0, zkserver.OpMulti, multi(create("/q/a"), create("/q/b"), create("/q/c")))
		r.stat("/q/c") // one znode was left before the multi, so all three creates succeed
		p := r.want(0, zkserver.OpMulti, multi(sub(zkserver.OpDelete, deleteRec("/q/a")), create("/q/d")))
		if codes := p.results(); codes[1] != int32(zkserver.ErrQuotaExceeded) {
			t.Errorf("%v, want the create to exceed the quota in spite of the delete", codes)
		}
	})
}

// Quotas, and the reaping of containers and TTL nodes, work after a restart from the DataFile.
func TestQuotasAndReapingAfterACrash(t *testing.T) {
	s, file := onFile(t, zkserver.Config{})
	r := session(t, s, 10*time.Second)
	r.create("/q", 0)
	limit(r, "/q", "count=9")
	r.want(0, zkserver.OpCreate, createRec("/q/x", "123", 0))
	r.want(0, zkserver.OpCreateContainer, containerRec("/c"))
	r.create("/c/x", 0)
	r.want(0, zkserver.OpDelete, deleteRec("/c/x"))
	s = crashed(t, file, zkserver.Config{})
	if got, _ := s.Get("/zookeeper/quota/q/zookeeper_stats"); string(got) != "count=2,bytes=3" {
		t.Errorf("%q", got)
	}
	if err := s.Set("/q/x", nil); err != nil {
		t.Fatal(err)
	}
	if got, _ := s.Get("/zookeeper/quota/q/zookeeper_stats"); string(got) != "count=2,bytes=0" {
		t.Errorf("%q", got)
	}
	if n := s.ReapNow(); n != 1 {
		t.Errorf("%d reaped", n)
	}
}
