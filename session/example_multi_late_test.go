package session_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
)

// A MultiOutcome tells whether a transaction has happened whose caller did not wait for the answer.
func ExampleMultiOutcome() {
	m, stop := start(context.Background())
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	s, err := m.Session(ctx)
	if err != nil {
		log.Fatal(err)
	}
	var o session.MultiOutcome
	var late <-chan session.MultiOutcome
	o.Results, late, o.Err = s.MultiLate(ctx, &zk.CreateRequest{Path: "/config", Data: []byte("color=blue")})
	if late != nil { // ctx has ended first
		o = <-late
	}
	if o.Err != nil {
		log.Fatal(o.Err)
	}
	fmt.Println(o.Results[0].String)
	// Output: /config
}
