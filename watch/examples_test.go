package watch_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/watch"
)

// The events of a tree, applied in their order, build the same tree.
func ExampleTreeEvent() {
	srv, m, stop := start()
	defer stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	check(srv.Create("/app", []byte("v1")))

	copied := make(map[string]string)
	apply := func(event watch.TreeEvent) {
		switch event.Type {
		case watch.Added, watch.Changed:
			copied[event.Path] = string(event.Data)
		case watch.Removed:
			delete(copied, event.Path)
		}
	}
	tree := watch.Tree(ctx, m, "/app")
	apply(<-tree.Events())
	check(srv.Create("/app/users", []byte("on")))
	apply(<-tree.Events())
	fmt.Println(copied)
	check(srv.Delete("/app/users"))
	apply(<-tree.Events())
	fmt.Println(copied)
	// Output:
	// map[/app:v1 /app/users:on]
	// map[/app:v1]
}

// The type of an event says what became of the znode.
func ExampleTreeEventType() {
	srv, m, stop := start()
	defer stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	tree := watch.Tree(ctx, m, "/app")
	check(tree.WaitSynced(ctx))
	check(srv.Create("/app", nil))
	fmt.Println((<-tree.Events()).Type)
	check(srv.Delete("/app"))
	fmt.Println((<-tree.Events()).Type == watch.Removed)
	// Output:
	// Added
	// true
}

// A stream that the consumer did not end has ended for a reason.
func ExampleEndError() {
	_, m, stop := start()
	defer stop()

	stream := watch.Node(context.Background(), m, "config")
	for range stream.Events() {
	}
	var end *watch.EndError
	if errors.As(stream.Err(), &end) {
		fmt.Println(end.Stream, end.Path, errors.Is(end, session.ErrInvalidPath))
	}
	// Output: node config true
}

// The reason says whether another stream can be of use.
func ExampleEndReason() {
	_, m, stop := start()
	defer stop()

	stream := watch.Children(context.Background(), m, "/services")
	<-stream.Events()
	m.Close()
	for range stream.Events() {
	}
	var end *watch.EndError
	errors.As(stream.Err(), &end)
	switch end.Reason {
	case watch.ManagerClosed:
		fmt.Println("connect again")
	case watch.Refused:
		fmt.Println("change the path or its ACL")
	}
	// Output: connect again
}
