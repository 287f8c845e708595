package session_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// saslUsers are passwords that the mechanism hashes in different ways: letters of
// ISO 8859-1, other letters, and characters that have to be quoted.
var saslUsers = map[string]string{"bob": "secret", "zoë": "pässwort", "łucja": "hasło", `q"o\te`: `p"a\ss`, "super": "pw"}

// A saslServer is a server with SASL.
type saslServer struct {
	address    string
	disconnect func(t *testing.T, id int64)
}

// withSASL runs test on an embedded server and on a real one with a JAAS file.
func withSASL(t *testing.T, required bool, test func(t *testing.T, srv saslServer)) {
	t.Run("zkserver", func(t *testing.T) {
		srv := zksynctest.Start(t, zksynctest.WithConfig(zkserver.Config{SASLUsers: saslUsers, RequireSASL: required, TickTime: 500 * time.Millisecond}))
		test(t, saslServer{srv.Addr(), func(t *testing.T, id int64) {
			if err := srv.Disconnect(id); err != nil {
				t.Error(err)
			}
		}})
	})
	t.Run("ZooKeeper", func(t *testing.T) {
		var b strings.Builder
		b.WriteString("Server {\n  org.apache.zookeeper.server.auth.DigestLoginModule required")
		escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
		for user, password := range saslUsers {
			b.WriteString("\n  \"user_" + escape.Replace(user) + `"="` + escape.Replace(password) + `"`)
		}
		b.WriteString(";\n};\n")
		path := filepath.Join(t.TempDir(), "jaas.conf")
		if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		opts := []zksynctest.RealOption{
			zksynctest.RealJVM("-Djava.security.auth.login.config="+path, "-Dfile.encoding=UTF-8"),
			zksynctest.RealProperty("authProvider.1", "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"),
		}
		if required {
			opts = append(opts, zksynctest.RealProperty("sessionRequireClientSASLAuth", "true"))
		}
		e := zksynctest.RealZooKeeper(t, 1, opts...)
		test(t, saslServer{e.Servers(), func(*testing.T, int64) { e.Reset(zksynctest.Client, 1) }})
	})
}

// connectSASL connects within a time limit, so that the test shows a refusal for which Connect waits.
func connectSASL(t *testing.T, address string, opts ...session.Option) (*session.Manager, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	m, err := session.Connect(ctx, address, append([]session.Option{session.WithTimeout(4 * time.Second)}, opts...)...)
	if err == nil {
		t.Cleanup(func() { m.Close() })
	} else if ctx.Err() != nil {
		t.Errorf("Connect ended because of its ctx: %v", err)
	}
	return m, err
}

// A client that authenticates by DIGEST-MD5 has the identity sasl:user on each connection before its requests, owns
// the znodes that it creates by default, is bound by sasl ACLs, and cannot Connect with a wrong password
// (ErrAuthFailed). Breaks if introduce calls greet first, or if the hash of a text is not in ISO 8859-1 where it can
// be.
func TestSASL(t *testing.T) {
	withSASL(t, false, func(t *testing.T, srv saslServer) {
		ctx := t.Context()
		for user, password := range saslUsers {
			m, err := connectSASL(t, srv.address, session.WithSASL(session.DigestMD5(user, password)))
			if err != nil {
				t.Errorf("user %s: %v", user, err)
				continue
			}
			s := current(t, m)
			path, err := s.Create(ctx, "/own-", nil, zk.FlagSequence)
			if err != nil {
				t.Errorf("user %s: %v", user, err)
				continue
			}
			for range 3 {
				srv.disconnect(t, s.ID())
				if _, _, err := s.Get(ctx, path); err != nil {
					t.Errorf("user %s, after a reconnect: %v", user, err)
				}
			}
		}
		bob, err := connectSASL(t, srv.address, session.WithSASL(session.DigestMD5("bob", "secret")))
		if err != nil {
			t.Fatal(err)
		}
		s := current(t, bob)
		create(t, s, "/bob", 0)
		if _, err := s.Create(ctx, "/shared", nil, 0, zk.ACL{Perms: zk.PermRead, Scheme: "sasl", ID: "zoë"}, zk.ACL{Perms: zk.PermAll, Scheme: "sasl", ID: "bob"}); err != nil {
			t.Fatal(err)
		}
		zoe, err := connectSASL(t, srv.address, session.WithSASL(session.DigestMD5("zoë", "pässwort")))
		if err != nil {
			t.Fatal(err)
		}
		nobody, err := connectSASL(t, srv.address)
		if err != nil {
			t.Fatal(err)
		}
		for name, stranger := range map[string]*session.Manager{"zoë": zoe, "nobody": nobody} {
			_, _, err := current(t, stranger).Get(ctx, "/bob")
			mustBe(t, err, zk.ErrNoAuth)
			if name != "nobody" && (err == nil || !strings.Contains(err.Error(), "sasl:"+name)) {
				t.Errorf("error %v does not name the identity", err)
			}
		}
		if _, _, err := current(t, zoe).Get(ctx, "/shared"); err != nil {
			t.Errorf("zoë may not read what she was given: %v", err)
		}
		_, err = current(t, zoe).Set(ctx, "/shared", nil, -1)
		mustBe(t, err, zk.ErrNoAuth)
		for user, password := range map[string]string{"bob": "guess", "stranger": "nothing"} {
			_, err := connectSASL(t, srv.address, session.WithSASL(session.DigestMD5(user, password)))
			mustBe(t, err, session.ErrAuthFailed, zk.ErrAuthFailed)
		}
	})
}

// A server that requires SASL serves clients that authenticate, and ends the Connect of
// others with ErrAuthFailed. A session that was lost is closed on that server, too.
func TestSASLRequired(t *testing.T) {
	withSASL(t, true, func(t *testing.T, srv saslServer) {
		m, err := connectSASL(t, srv.address, session.WithSASL(session.DigestMD5("bob", "secret")))
		if err != nil {
			t.Fatal(err)
		}
		create(t, current(t, m), "/required", 0)
		_, err = connectSASL(t, srv.address)
		mustBe(t, err, session.ErrAuthFailed)
		if err != nil && !strings.Contains(err.Error(), "WithSASL") {
			t.Errorf("error %v does not say what to do", err)
		}
		_, err = connectSASL(t, srv.address, session.WithSASL(session.DigestMD5("bob", "wrong")))
		mustBe(t, err, session.ErrAuthFailed)
	})
}

// A server without SASL ends the Connect of a client that asks for it.
func TestAServerWithoutSASL(t *testing.T) {
	for name, address := range map[string]string{"zkserver": zksynctest.Start(t).Addr(), "ZooKeeper": zksynctest.RealShared(t).Servers()} {
		_, err := connectSASL(t, address, session.WithSASL(session.DigestMD5("bob", "secret")))
		mustBe(t, err, session.ErrAuthFailed)
		if err == nil || !strings.Contains(err.Error(), "offers no SASL") {
			t.Errorf("%s: error %v does not name the cause", name, err)
		}
	}
}

// steps is a mechanism of a test.
type steps struct {
	start error
	next  func(challenge []byte) ([]byte, bool, error)
}

func (m steps) Start(context.Context, string) (session.SASLExchange, []byte, error) {
	return m, nil, m.start
}
func (m steps) Next(challenge []byte) ([]byte, bool, error) { return m.next(challenge) }

// An error of a mechanism ends Connect: at once if the mechanism does not accept the server's token, and with ctx if
// the mechanism cannot begin, because that may heal.
func TestAMechanismThatFails(t *testing.T) {
	srv := zksynctest.Start(t, zksynctest.WithConfig(zkserver.Config{SASLUsers: saslUsers}))
	ours := errors.New("the server is not who it claims to be")
	_, err := connectSASL(t, srv.Addr(), session.WithSASL(steps{next: func([]byte) ([]byte, bool, error) { return nil, false, ours }}))
	mustBe(t, err, session.ErrAuthFailed, ours)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	ours = errors.New("no ticket")
	_, err = session.Connect(ctx, srv.Addr(), session.WithSASL(steps{start: ours}))
	mustBe(t, err, context.DeadlineExceeded, ours)
	for _, mechanism := range []session.SASLMechanism{nil, session.DigestMD5("", "secret")} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = session.Connect(ctx, srv.Addr(), session.WithSASL(mechanism))
		mustBe(t, err, session.ErrInvalidOption)
	}
	_, err = connectSASL(t, srv.Addr(), session.WithSASL(steps{next: func([]byte) ([]byte, bool, error) { return nil, false, nil }}))
	mustBe(t, err, session.ErrAuthFailed)
}

// The SASL user super has every permission that an ACL gives to a SASL user, and no other permission.
func TestSASLSuperUser(t *testing.T) {
	withSASL(t, false, func(t *testing.T, srv saslServer) {
		bob, err := connectSASL(t, srv.address, session.WithSASL(session.DigestMD5("bob", "secret")))
		if err != nil {
			t.Fatal(err)
		}
		for path, acl := range map[string]zk.ACL{"/sasl": {Perms: zk.PermRead, Scheme: "sasl", ID: "bob"}, "/digest": {Perms: zk.PermAll, Scheme: "digest", ID: "a:b"}} {
			if _, err := current(t, bob).Create(t.Context(), path, nil, 0, acl); err != nil {
				t.Fatal(err)
			}
		}
		super, err := connectSASL(t, srv.address, session.WithSASL(session.DigestMD5("super", "pw")))
		if err != nil {
			t.Fatal(err)
		}
		s := current(t, super)
		if _, _, err := s.Get(t.Context(), "/sasl"); err != nil {
			t.Errorf("a znode of sasl:bob: %v", err)
		}
		if _, err := s.Set(t.Context(), "/sasl", nil, -1); !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("a permission that bob does not have: %v", err)
		}
		if _, _, err := s.Get(t.Context(), "/digest"); !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("a znode of another scheme: %v", err)
		}
	})
}
