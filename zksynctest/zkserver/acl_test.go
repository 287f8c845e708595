package zkserver_test

import (
	"crypto/sha1"
	"encoding/base64"
	"testing"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

func digestOf(auth, user string) string {
	sum := sha1.Sum([]byte(auth))
	return user + ":" + base64.StdEncoding.EncodeToString(sum[:])
}

func (r *raw) auth(scheme, auth string) reply {
	r.t.Helper()
	return r.call(zkserver.OpAuth, rec{}.i32(0).str(scheme).str(auth))
}

// A digest ACL gives the owner of the password the permissions of the entry, and other users only the permissions of
// the other entries.
func TestDigest(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		owner, stranger := session(t, s, 0), session(t, s, 0)
		if p := owner.auth("digest", "me:secret"); p.code != 0 || p.zxid != 0 {
			t.Fatalf("%+v", p)
		}
		owner.want(0, zkserver.OpCreate, createACL("/mine", 0, 31, "auth", "", 1, "world", "anyone", 1, "world", "anyone"))
		p := stranger.want(0, zkserver.OpGetACL, rec{}.str("/mine"))
		if n, perms, scheme, id := p.i32(), p.i32(), p.str(), p.str(); n != 2 || perms != 31 || scheme != "digest" || id != "me:x" {
			t.Fatalf("a stranger sees %d: %d %s:%s", n, perms, scheme, id)
		}
		p = owner.want(0, zkserver.OpGetACL, rec{}.str("/mine"))
		if _, _, _, id := p.i32(), p.i32(), p.str(), p.str(); id != digestOf("me:secret", "me") {
			t.Fatalf("the owner sees %s", id)
		}
		stranger.want(0, zkserver.OpGetData, rec{}.str("/mine").flag(false))
		stranger.want(zkserver.ErrNoAuth, zkserver.OpSetData, rec{}.str("/mine").str("").i32(-1))
		stranger.want(zkserver.ErrNoAuth, zkserver.OpCreate, createRec("/mine/x", "", 0))
		owner.create("/mine/x", 0)
		stranger.want(zkserver.ErrNoAuth, zkserver.OpDelete, rec{}.str("/mine/x").i32(-1))

		// A new connection does not have the identities of the old connection.
		again := owner.again(s).welcome()
		again.want(zkserver.ErrNoAuth, zkserver.OpSetData, rec{}.str("/mine").str("").i32(-1))
		again.auth("digest", "me:secret")
		again.want(0, zkserver.OpSetData, rec{}.str("/mine").str("").i32(-1))
	})
}

// A create with an invalid ACL returns InvalidACL.
func TestACLsThatAreRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 0)
		for name, entry := range map[string][]any{
			"none":                       {},
			"auth without an identity":   {31, "auth", ""},
			"world but not anyone":       {31, "world", "me"},
			"unknown scheme":             {31, "kerberos", "me"},
			"super":                      {31, "super", ""},
			"digest without a hash":      {31, "digest", "me"},
			"digest with an empty hash":  {31, "digest", "me:"},
			"digest with three parts":    {31, "digest", "a:b:c"},
			"ip without an address":      {31, "ip", "localhost"},
			"ip with too many bits":      {31, "ip", "127.0.0.1/33"},
			"one bad among the good":     {31, "world", "anyone", 1, "ip", "x"},
			"ip with something for bits": {31, "ip", "127.0.0.1/x"},
		} {
			if p := r.call(zkserver.OpCreate, createACL("/x", 0, entry...)); p.code != zkserver.ErrInvalidACL {
				t.Errorf("%s: %v", name, p.code)
			}
		}
	})
}

// An entry of the ip scheme grants its permissions to clients with that address or in that network.
func TestIPScheme(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 0)
		for i, c := range []struct {
			id   string
			want zkserver.Code
		}{
			{"127.0.0.1", 0}, {"127.0.0.01", 0}, {"127.0.0.0/8", 0}, {"127.255.255.255/8", 0}, {"0.0.0.0/0", 0},
			{"10.0.0.1", zkserver.ErrNoAuth}, {"127.0.0.2/31", zkserver.ErrNoAuth}, {"::1", zkserver.ErrNoAuth},
		} {
			path := "/n" + string(rune('a'+i))
			r.want(0, zkserver.OpCreate, createACL(path, 0, 31, "ip", c.id))
			if p := r.call(zkserver.OpGetData, rec{}.str(path).flag(false)); p.code != c.want {
				t.Errorf("%s: %v, want %v", c.id, p.code, c.want)
			}
		}
	})
}

// A client that authenticates with the SuperDigest may do everything.
func TestSuper(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		s := start(t, zkserver.Config{SuperDigest: "super:D/InIHSb7yEEbrWz8b9l71RjZJU="})
		r := session(t, s, 0)
		r.want(0, zkserver.OpCreate, createACL("/closed", 0, 0, "world", "anyone"))
		r.want(zkserver.ErrNoAuth, zkserver.OpGetData, rec{}.str("/closed").flag(false))
		r.auth("digest", "super:test")
		r.want(0, zkserver.OpGetData, rec{}.str("/closed").flag(false))
	})
}

// An unknown authentication scheme is answered with AuthFailed and closes the connection, and the session stays.
func TestUnknownAuthScheme(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		for _, scheme := range []string{"kerberos", "world", "auth", ""} {
			r := session(t, s, 0)
			if p := r.auth(scheme, "x"); p.code != zkserver.ErrAuthFailed || p.zxid != 0 {
				t.Errorf("%s: %+v", scheme, p)
			}
			r.closed()
		}
		if len(s.Sessions()) != 4 {
			t.Error("a refused identity costs the connection, not the session")
		}
	})
}
