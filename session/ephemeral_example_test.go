package session_test

import (
	"context"
	"fmt"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A service that is listed for as long as it runs, also when its session is
// lost in between.
func ExampleManager_Ephemeral() {
	srv, err := zkserver.New(zkserver.Config{})
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	ctx := context.Background()
	m, err := session.Connect(ctx, "127.0.0.1:2181", session.WithDialer(srv.Dial))
	if err != nil {
		panic(err)
	}
	defer m.Close()

	e, err := m.Ephemeral(ctx, "/services/api/host-1", []byte("10.0.0.1:80"))
	if err != nil {
		panic(err)
	}
	fmt.Println(<-e.Status(), e.Path())

	s, err := m.Session(ctx)
	if err != nil {
		panic(err)
	}
	if err := srv.ExpireSession(s.ID()); err != nil {
		panic(err)
	}
	for status := range e.Status() {
		if status == session.Present {
			break
		}
	}
	data, _ := srv.Get("/services/api/host-1")
	fmt.Printf("again in the next session: %s\n", data)

	fmt.Println("close:", e.Close())
	_, there := srv.Get("/services/api/host-1")
	fmt.Println("still there:", there)
	// Output:
	// Present /services/api/host-1
	// again in the next session: 10.0.0.1:80
	// close: <nil>
	// still there: false
}
