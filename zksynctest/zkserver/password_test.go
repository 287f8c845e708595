package zkserver_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// The password of a session follows neither from its id nor from the password of another session. A
// client that presents the password that a real server would derive is told that the session has
// expired, while the owner's session continues. The line to break is the call of newPassword in
// openSession.
func TestPasswordsCannotBeGuessed(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		s, twin := start(t, zkserver.Config{}), start(t, zkserver.Config{})
		seen := map[string]bool{}
		for range 100 {
			r, other := session(t, s, 30*time.Second), session(t, twin, 30*time.Second)
			if r.id != other.id {
				t.Fatalf("ids %x and %x at the same time", r.id, other.id)
			}
			if seen[r.password] || seen[other.password] || r.password == other.password || len(r.password) != 16 {
				t.Fatalf("passwords %x, %x", r.password, other.password)
			}
			seen[r.password], seen[other.password] = true, true
			derived := zkserver.PasswordOf(r.id)
			attacker := *r
			attacker.password = string(derived[:])
			if w := attacker.again(s).welcome(); w.id != 0 || w.timeout != 0 {
				t.Fatalf("the attacker has session %x for %d ms", w.id, w.timeout)
			}
			r.again(s).welcome().want(0, zkserver.OpPing, nil)
		}
	})
}

// A read-only endpoint knows the passwords of its own sessions, and refuses other passwords. The line to break is the call of admits in connectReadOnly.
func TestPasswordsWithoutAQuorum(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		s, err := zkserver.NewEnsemble(zkserver.Config{ReadOnlyMode: true}, 3)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		dial := func(id int64, password string) *raw {
			nc, err := s.Endpoint(1).Dial(context.Background(), "tcp", "")
			if err != nil {
				t.Fatal(err)
			}
			r := rawOver(t, nc)
			pw := make([]byte, 16)
			copy(pw, password)
			r.frame(rec{}.i32(0).i64(0).i32(30_000).i64(id).str(string(pw)).flag(true))
			in, err := r.read()
			if err != nil {
				t.Fatal(err)
			}
			in.i32()
			r.timeout, r.id, r.password = in.i32(), in.i64(), in.str()
			return r
		}
		s.Endpoint(2).Stop()
		s.Endpoint(3).Stop()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		local := dial(0, "")
		if local.id == 0 {
			t.Fatal("no session")
		}
		if again := dial(local.id, local.password); again.id != local.id || again.password != local.password {
			t.Errorf("session %x with its password: session %x", local.id, again.id)
		}
		derived := zkserver.PasswordOf(local.id)
		if again := dial(local.id, string(derived[:])); again.id != 0 || again.timeout != 0 {
			t.Errorf("session %x with a derived password: session %x", local.id, again.id)
		}
	})
}
