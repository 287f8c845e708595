package zksync_test

import (
	"context"
	"fmt"
	"log"

	"github.com/go-zksync/toolkit/zksync"
)

// Inspect tells what uses a path and who holds it, whichever client that is.
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
