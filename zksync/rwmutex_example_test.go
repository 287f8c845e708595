package zksync_test

import (
	"context"
	"fmt"
	"log"

	"github.com/go-zksync/toolkit/zksync"
)

func ExampleRWMutex() {
	m, stop := startExample()
	defer stop()
	ctx := context.Background()

	config := zksync.NewRWMutex(m, "/locks/config")
	if err := config.RLock(ctx); err != nil {
		log.Fatal(err)
	}
	ok, _ := config.TryRLock(ctx)
	fmt.Println("another one reads:", ok)
	ok, _ = config.TryLock(ctx)
	fmt.Println("another one writes:", ok)
	config.RUnlock()
	config.RUnlock()
	err := config.Do(ctx, func(context.Context) error {
		fmt.Println("one writes, nobody reads")
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// another one reads: true
	// another one writes: false
	// one writes, nobody reads
}

// The writer reads its own write back before any other writer can change it.
func ExampleRWMutex_Downgrade() {
	m, stop := startExample()
	defer stop()
	ctx := context.Background()

	config := zksync.NewRWMutex(m, "/locks/config")
	if err := config.Lock(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println("write")
	if err := config.Downgrade(ctx); err != nil {
		log.Fatal(err) // nothing is held then
	}
	ok, _ := config.TryRLock(ctx)
	fmt.Println("others may read:", ok)
	config.RUnlock()
	ok, _ = config.TryLock(ctx)
	fmt.Println("others may write:", ok)
	config.RUnlock()
	// Output:
	// write
	// others may read: true
	// others may write: false
}
