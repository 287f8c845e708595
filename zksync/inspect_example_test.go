package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/go-zksync/toolkit/zksync"
)

// Inspect reports the primitive at a path and its holders, for any of the clients
// that it knows.
func ExampleInspect() {
	m, stop := startExample()
	defer stop()
	ctx := context.Background()

	mu := zksync.NewMutex(m, "/locks/report", zksync.WithID("host-a:4711"))
	if err := mu.Lock(ctx); err != nil {
		log.Fatal(err)
	}
	found, err := zksync.Inspect(ctx, m, "/locks/report")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(found.Kind, "of", found.Clients)
	for _, p := range found.Holders() {
		fmt.Println("held by", p.ID)
	}
	if err := mu.Unlock(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// lock of [zksync]
	// held by host-a:4711
}

// Contenders names the holder and the contenders that wait, in order.
func ExampleMutex_Contenders() {
	m, stop := startExample()
	defer stop()
	ctx := context.Background()

	mu := zksync.NewMutex(m, "/locks/report", zksync.WithID("host-a:4711"))
	if err := mu.Lock(ctx); err != nil {
		log.Fatal(err)
	}
	line, err := mu.Contenders(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range line {
		fmt.Println(c.ID, c.Class, "holds:", c.Holds)
	}
	if err := mu.Unlock(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// host-a:4711 exclusive holds: true
}

// Each contender names itself in its znode, by default as host:pid.
func ExampleWithID() {
	m, stop := startExample()
	defer stop()
	ctx := context.Background()

	gate := zksync.NewSemaphore(m, "/uploads", 2, zksync.WithID("worker-7"))
	if err := gate.Acquire(ctx, 1); err != nil {
		log.Fatal(err)
	}
	all, err := gate.Contenders(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range all {
		fmt.Println(c.ID, "holds:", c.Holds)
	}
	if err := gate.Release(1); err != nil {
		log.Fatal(err)
	}
	// Output: worker-7 holds: true
}

// The error of a wait that was given up says whom the call waited for.
func ExampleWithMaxWait() {
	m, stop := startExample()
	defer stop()
	ctx := context.Background()

	first := zksync.NewMutex(m, "/locks/report", zksync.WithID("host-a:4711"))
	if err := first.Lock(ctx); err != nil {
		log.Fatal(err)
	}
	second := zksync.NewMutex(m, "/locks/report", zksync.WithMaxWait(100*time.Millisecond))
	err := second.Lock(ctx)
	fmt.Println(errors.Is(err, zksync.ErrMaxWait), strings.Contains(err.Error(), "behind one other, held by host-a:4711"))
	if err := first.Unlock(); err != nil {
		log.Fatal(err)
	}
	// Output: true true
}

// A process that starts again waits for the id of its former self, and the error says
// who has the id.
func ExampleWithIDWait() {
	m, stop := startExample()
	defer stop()
	ctx := context.Background()

	former, err := zksync.NewGroup(m, "/workers").Join(ctx, "worker-7", nil)
	if err != nil {
		log.Fatal(err)
	}
	group := zksync.NewGroup(m, "/workers", zksync.WithIDWait())
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	_, err = group.Join(short, "worker-7", nil)
	fmt.Println(strings.Contains(err.Error(), "waiting for the id to be free"))

	if err := former.Leave(); err != nil {
		log.Fatal(err)
	}
	member, err := group.Join(ctx, "worker-7", nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(member.ID)
	if err := member.Leave(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// true
	// worker-7
}
