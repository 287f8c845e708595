package zkserver_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A data file keeps an ACL whose id has a character beyond 16 bits, and the owner of the znode keeps its rights.
func TestADataFileKeepsAnyACL(t *testing.T) {
	s, file := onFile(t, zkserver.Config{})
	r := session(t, s, 10*time.Second)
	auth := rec{}.i32(0).str("digest").str("\U0001F600:pw")
	r.want(0, zkserver.OpAuth, auth)
	r.want(0, zkserver.OpCreate, append(rec{}.str("/mine").str("data"), rec{}.acl(31, "auth", "")...).i32(0))
	before := r.want(0, zkserver.OpGetACL, rec{}.str("/mine"))
	again := session(t, crashed(t, file, zkserver.Config{}), 10*time.Second)
	again.want(0, zkserver.OpAuth, auth)
	if after := again.want(0, zkserver.OpGetACL, rec{}.str("/mine")); string(after.b) != string(before.b) {
		t.Errorf("the ACL after a restart is %q, want %q", after.b, before.b)
	}
}

// Session timeouts are whole milliseconds, at least one: a server can read every session in its data file.
func TestSessionTimeoutsAreWholeMilliseconds(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		for _, cfg := range []zkserver.Config{{MinSessionTimeout: 500 * time.Microsecond}, {MaxSessionTimeout: 999 * time.Microsecond}} {
			if _, err := zkserver.New(cfg); err == nil || !strings.Contains(err.Error(), "at least 1ms") {
				t.Errorf("%v to %v: %v", cfg.MinSessionTimeout, cfg.MaxSessionTimeout, err)
			}
		}
		cfg := zkserver.Config{MinSessionTimeout: 1500 * time.Microsecond, DataFile: filepath.Join(t.TempDir(), "data")}
		s := start(t, cfg)
		if err := s.Endpoint(1).SetSessionTimeouts(time.Millisecond-1, time.Second); err == nil {
			t.Error("SetSessionTimeouts accepts less than a millisecond")
		}
		r := session(t, s, 0)
		if list := s.Sessions(); r.timeout != 1 || len(list) != 1 || list[0].Timeout != time.Millisecond {
			t.Errorf("granted %d ms, and the server has %+v", r.timeout, list)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		start(t, cfg)
	})
}
