package watch_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/watch"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// start starts a server in this process and connects to it.
func start() (srv *zkserver.Server, m *session.Manager, stop func()) {
	srv, err := zkserver.New(zkserver.Config{})
	if err != nil {
		panic(err)
	}
	m, err = session.Connect(context.Background(), "127.0.0.1:2181", session.WithDialer(srv.Dial))
	if err != nil {
		panic(err)
	}
	return srv, m, func() {
		m.Close()
		srv.Close()
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// A service that follows its configuration, from before it is there.
func ExampleNode() {
	srv, m, stop := start()
	defer stop()
	ctx := context.Background()

	for state, err := range watch.Node(ctx, m, "/config").All() {
		check(err)
		fmt.Printf("%v %q\n", state.Exists, state.Data)
		switch {
		case !state.Exists:
			check(srv.Create("/config", []byte("color=blue")))
		case state.Stat.Version == 0:
			check(srv.Set("/config", []byte("color=green")))
		default:
			return
		}
	}
	// Output:
	// false ""
	// true "color=blue"
	// true "color=green"
}

// The members of a group, as they come and go.
func ExampleChildren() {
	srv, m, stop := start()
	defer stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	members := watch.Children(ctx, m, "/services")
	fmt.Println(<-members.Events() == nil)
	check(srv.Create("/services", nil))
	fmt.Println(<-members.Events())
	check(srv.Create("/services/host-1", nil))
	fmt.Println(<-members.Events())
	check(srv.Create("/services/host-0", nil))
	fmt.Println(<-members.Events())

	cancel()
	_, open := <-members.Events()
	fmt.Println(open, members.Err())
	// Output:
	// true
	// []
	// [host-1]
	// [host-0 host-1]
	// false watch children /services: context canceled
}

// A mirror that is asked at any time, and that tells what has changed.
func ExampleTree() {
	srv, m, stop := start()
	defer stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	check(srv.Create("/app", nil))
	check(srv.Create("/app/users", []byte("on")))
	check(srv.Create("/app/users/joe", nil))

	tree := watch.Tree(ctx, m, "/app")
	check(tree.WaitSynced(ctx))
	users, _ := tree.Get("/app/users")
	names, _ := tree.Children("/app/users")
	fmt.Printf("%d znodes, users %s: %v\n", tree.Len(), users.Data, names)

	for event, err := range tree.All() {
		check(err)
		fmt.Println(event.Type, event.Path)
		if event.Path == "/app/users/joe" {
			break
		}
	}
	check(srv.Set("/app/users", []byte("off")))
	event := <-tree.Events()
	fmt.Printf("%v %s %s\n", event.Type, event.Path, event.Data)
	check(srv.Delete("/app/users/joe"))
	event = <-tree.Events()
	fmt.Println(event.Type, event.Path)
	// Output:
	// 3 znodes, users on: [joe]
	// Added /app
	// Added /app/users
	// Added /app/users/joe
	// Changed /app/users off
	// Removed /app/users/joe
}

// A service that follows its configuration as a Go value. A mistake in the znode
// leaves the last good value in force.
func ExampleValue() {
	srv, m, stop := start()
	defer stop()
	type config struct{ Color string }
	check(srv.Create("/config", []byte(`{"Color":"blue"}`)))

	for c, err := range watch.Value(context.Background(), m, "/config", watch.JSON[config]).All() {
		check(err)
		fmt.Printf("%q, error: %v\n", c.Value.Color, c.Err)
		switch c.State.Stat.Version {
		case 0:
			check(srv.Set("/config", []byte(`{"Color":`)))
		case 1:
			check(srv.Set("/config", []byte(`{"Color":"green"}`)))
		default:
			return
		}
	}
	// Output:
	// "blue", error: <nil>
	// "blue", error: watch value /config: decode version 1: unexpected end of JSON input
	// "green", error: <nil>
}

// A stream that is made from another: the number of children.
func ExampleNewStream() {
	srv, m, stop := start()
	defer stop()
	count := func(ctx context.Context, path string) *watch.Stream[int] {
		return watch.NewStream(ctx, "count", path, func(ctx context.Context, report func(int, any)) error {
			for names, err := range watch.Children(ctx, m, path).All() {
				if err != nil {
					return err
				}
				report(len(names), len(names)) // an equal number is not reported again
			}
			return nil
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	check(srv.Create("/services", nil))
	stream := count(ctx, "/services")
	fmt.Println(<-stream.Events())
	check(srv.Create("/services/host-1", nil))
	fmt.Println(<-stream.Events())
	cancel()
	for range stream.Events() {
	}
	var end *watch.EndError
	fmt.Println(errors.As(stream.Err(), &end), end.Reason, end)
	// Output:
	// 0
	// 1
	// true ContextEnded watch count /services: context canceled
}
