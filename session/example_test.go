package session_test

import (
	"context"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// start opens a Manager on a server in this process. With other servers it is session.Connect(ctx,
// "zk1:2181,zk2:2181,zk3:2181").
func start(ctx context.Context) (*session.Manager, func()) {
	srv, err := zkserver.New(zkserver.Config{})
	if err != nil {
		panic(err)
	}
	m, err := session.Connect(ctx, "127.0.0.1:2181", session.WithDialer(srv.Dial))
	if err != nil {
		panic(err)
	}
	return m, func() {
		m.Close()
		srv.Close()
	}
}

func ExampleManager() {
	ctx := context.Background()
	m, stop := start(ctx)
	defer stop()

	// Do calls its function again over lost connections and sessions, so the function must be repeatable.
	err := m.Do(ctx, func(ctx context.Context, s *session.Session) error {
		if err := s.MakeDir(ctx, "/app/config"); err != nil {
			return err
		}
		_, err := s.Set(ctx, "/app/config", []byte("color=blue"), -1)
		return err
	})
	fmt.Println(m.State(), err)
	m.Close()
	fmt.Println(m.State())
	// Output:
	// Connected <nil>
	// Closed
}

func ExampleSession() {
	ctx := context.Background()
	m, stop := start(ctx)
	defer stop()

	s, err := m.Session(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	path, err := s.Create(ctx, "/member-", []byte("host-1"), zk.FlagEphemeralSequential)
	fmt.Println(path, err)
	data, stat, err := s.Get(ctx, path)
	fmt.Printf("%s, ours: %v, %v\n", data, stat.EphemeralOwner == s.ID(), err)
	_, _, err = s.Get(ctx, "/none")
	fmt.Println(err)
	// Output:
	// /member-0000000000 <nil>
	// host-1, ours: true, <nil>
	// get /none: zk: node does not exist
}

func ExampleLease() {
	ctx := context.Background()
	m, stop := start(ctx)
	defer stop()

	s, err := m.Session(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	lease := s.Lease()
	defer lease.End()
	path, err := s.CreateProtected(ctx, "/leader-", nil, zk.FlagEphemeral)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Discard(path)
	if err := lease.Hold(); err != nil {
		fmt.Println(err)
		return
	}
	// From here on s.Context() ends before the server can remove the znode.
	fmt.Println("held, context:", s.Context().Err())
	// Output:
	// held, context: <nil>
}

func ExampleWatch() {
	ctx := context.Background()
	m, stop := start(ctx)
	defer stop()

	s, err := m.Session(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	there, _, w, err := s.WatchExists(ctx, "/ready")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer w.Stop()
	fmt.Println("there:", there)
	if _, err := s.Create(ctx, "/ready", nil, 0); err != nil {
		fmt.Println(err)
		return
	}
	ev := <-w.Events()
	fmt.Println(ev.Type, ev.Path, "unseen changes:", w.FiredOn() != w.Connection())
	// Output:
	// there: false
	// EventNodeCreated /ready unseen changes: false
}
