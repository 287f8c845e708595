package session_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// serve starts a server in this process. The Dial method of the server replaces a network.
func serve(cfg zkserver.Config) *zkserver.Server {
	srv, err := zkserver.New(cfg)
	if err != nil {
		log.Fatal(err)
	}
	return srv
}

// An observer receives each request, with its latency and its outcome.
func ExampleObserver() {
	ctx := context.Background()
	srv := serve(zkserver.Config{})
	defer srv.Close()

	var requests, refused atomic.Int64
	m, err := session.Connect(ctx, "127.0.0.1:2181", session.WithDialer(srv.Dial), session.WithObserver(session.Observer{
		StateChanged: func(c session.StateChange) { fmt.Println(c.From, "to", c.To) },
		RequestDone: func(r session.RequestDone) {
			if r.Own {
				return // made by the Manager
			}
			requests.Add(1)
			if r.Class != session.ClassOK {
				refused.Add(1)
			}
		},
	}))
	if err != nil {
		log.Fatal(err)
	}
	s, err := m.Session(ctx)
	if err != nil {
		log.Fatal(err)
	}
	_, err = s.Create(ctx, "/config", []byte("color=blue"), 0)
	fmt.Println(err)
	_, _, err = s.Get(ctx, "/none")
	fmt.Println(err)
	m.Close()
	fmt.Println(requests.Load(), "requests,", refused.Load(), "refused")
	// Output:
	// Connecting to Connected
	// <nil>
	// get /none: zk: node does not exist
	// Connected to Closed
	// 2 requests, 1 refused
}

// A firstLine prints only the first line.
type firstLine struct{ once sync.Once }

func (w *firstLine) Write(b []byte) (int, error) {
	w.once.Do(func() { os.Stdout.Write(b) })
	return len(b), nil
}

// Log lines go to a logger of log/slog.
func ExampleWithSlog() {
	srv := serve(zkserver.Config{})
	defer srv.Close()

	handler := slog.NewTextHandler(&firstLine{}, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "session" {
			return slog.Attr{} // so that the output is always the same
		}
		return a
	}})
	m, err := session.Connect(context.Background(), "127.0.0.1:2181", session.WithDialer(srv.Dial), session.WithSlog(slog.New(handler)))
	if err != nil {
		log.Fatal(err)
	}
	m.Close()
	// Output: level=INFO msg=connected server=127.0.0.1:2181
}

// The server knows this client as the user bob. ACLs name the user sasl:bob. Wrong credentials end Connect.
func ExampleWithSASL() {
	ctx := context.Background()
	srv := serve(zkserver.Config{SASLUsers: map[string]string{"bob": "secret"}})
	defer srv.Close()

	m, err := session.Connect(ctx, "127.0.0.1:2181", session.WithDialer(srv.Dial), session.WithSASL(session.DigestMD5("bob", "secret")))
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	s, err := m.Session(ctx)
	if err != nil {
		log.Fatal(err)
	}
	_, err = s.Create(ctx, "/bobs", nil, 0) // with permissions for bob only, unless WithACL is given
	fmt.Println(err)

	_, err = session.Connect(ctx, "127.0.0.1:2181", session.WithDialer(srv.Dial), session.WithSASL(session.DigestMD5("bob", "guess")))
	fmt.Println(errors.Is(err, session.ErrAuthFailed))
	// Output:
	// <nil>
	// true
}

// rotating reads the password anew for each connection.
type rotating struct {
	user string
	read func(context.Context) (string, error)
}

func (r rotating) Start(ctx context.Context, server string) (session.SASLExchange, []byte, error) {
	password, err := r.read(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("password of %s: %w", r.user, err)
	}
	return session.DigestMD5(r.user, password).Start(ctx, server)
}

func (r rotating) String() string { return "sasl:" + r.user }

// A program has its own mechanism: DIGEST-MD5 with a password that changes while the program runs. The module
// examples/kerberos has a mechanism for Kerberos.
func ExampleSASLMechanism() {
	ctx := context.Background()
	srv := serve(zkserver.Config{SASLUsers: map[string]string{"bob": "secret"}, RequireSASL: true})
	defer srv.Close()

	fromVault := func(context.Context) (string, error) { return "secret", nil }
	m, err := session.Connect(ctx, "127.0.0.1:2181", session.WithDialer(srv.Dial), session.WithSASL(rotating{"bob", fromVault}))
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	fmt.Println(m.State())
	// Output: Connected
}

// A chroot that does not exist is an error, because it may be mistyped.
func ExampleWithCreateChroot() {
	ctx := context.Background()
	srv := serve(zkserver.Config{})
	defer srv.Close()

	_, err := session.Connect(ctx, "127.0.0.1:2181/app", session.WithDialer(srv.Dial))
	fmt.Println(errors.Is(err, session.ErrNoChroot))
	m, err := session.Connect(ctx, "127.0.0.1:2181/app", session.WithDialer(srv.Dial), session.WithCreateChroot())
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	fmt.Println(m.State())
	// Output:
	// true
	// Connected
}

// Stats returns the state and the calls that wait, without a request.
func ExampleManager_Stats() {
	ctx := context.Background()
	m, stop := start(ctx)
	defer stop()

	wait := m.StartWait("deploy", "/app/lock", func(context.Context) error { return errors.New("for a window") })
	defer wait.Stop()
	st := m.Stats()
	fmt.Println(st.State, strings.HasPrefix(st.Session, "0x"), st.Timeout, st.Held, "held")
	for _, w := range st.Waits {
		fmt.Println(w.Op, w.Path)
	}
	// Output:
	// Connected true 10s 0 held
	// deploy /app/lock
}

// A primitive that builds on package session explains a wait: in the log after three seconds, and in the error.
func ExampleWait() {
	m, stop := start(context.Background())
	defer stop()

	ctx, cancel := context.WithCancel(context.Background())
	wait := m.StartWait("vote", "/app/votes", func(context.Context) error { return errors.New("for 2 more of 5 votes") })
	cancel()
	err := wait.Cancelled(ctx)
	fmt.Println(session.WaitReason(err) != nil, strings.Contains(err.Error(), "for 2 more of 5 votes: context canceled"))
	// Output: true true
}
