package zkserver_test

import (
	"testing"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// The server answers null strings, buffers and lists as a real server does.
func TestNull(t *testing.T) {
	null := rec{}.i32(-1)
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 0)
		runAsks(t, r, []ask{
			{"exists", zkserver.OpExists, null.flag(true), zkserver.ErrMarshalling},
			{"getData", zkserver.OpGetData, null.flag(true), zkserver.ErrMarshalling},
			{"getACL", zkserver.OpGetACL, null, zkserver.ErrMarshalling},
			{"setWatches", zkserver.OpSetWatches, rec{}.i64(0).i32(-1, -1, -1), zkserver.ErrMarshalling},
		})
		if s.Watches() != 0 {
			t.Errorf("%d watches", s.Watches())
		}
		if p := r.want(0, zkserver.OpSync, null); p.str() != "<null>" {
			t.Error("sync answers another path than it was asked")
		}
		r.send(zkserver.OpSASL, null)
		r.closed()
		r = session(t, s, 0)
		r.want(zkserver.ErrAuthFailed, zkserver.OpAuth, rec{}.i32(0).str("digest").i32(-1))
		r.closed()
	})
}

// Strings that are not UTF-8, or have characters beyond 16 bits, are returned like by a real
// server.
func TestStringsOfJava(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 0)
		for asked, want := range map[string]string{
			"/é中":         "/é中",
			"/\xff\xfe":   "/\ufffd\ufffd",
			"/\U0001F600": "/\xed\xa0\xbd\xed\xb8\x80",
		} {
			if got := r.want(0, zkserver.OpSync, rec{}.str(asked)).str(); got != want {
				t.Errorf("%q comes back as %q, want %q", asked, got, want)
			}
		}
		// The digest is computed from the UTF-8 text.
		r.want(0, zkserver.OpAuth, rec{}.i32(0).str("digest").str("\xff\U0001F600:b"))
		r.want(0, zkserver.OpCreate, rec{}.str("/a").str("").acl(31, "auth", "").i32(0))
		p := r.want(0, zkserver.OpGetACL, rec{}.str("/a"))
		p.i32()
		p.i32()
		if scheme, id := p.str(), p.str(); scheme != "digest" || id != "\ufffd\xed\xa0\xbd\xed\xb8\x80:5z3dwUgpaTlBVBf7FoVsuHn9Tbk=" {
			t.Errorf("%s %q", scheme, id)
		}
	})
}

// multiRead ignores the watch flags of its reads.
func TestMultiReadLeavesNoWatch(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 0)
		r.want(0, zkserver.OpMultiRead, multi(sub(zkserver.OpGetData, rec{}.str("/").flag(true)),
			sub(zkserver.OpGetChildren, rec{}.str("/").flag(true))))
		if s.Watches() != 0 {
			t.Errorf("%d watches", s.Watches())
		}
	})
}
