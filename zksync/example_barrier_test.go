package zksync_test

import (
	"context"
	"fmt"
	"log"
	"sync"

	"github.com/go-zksync/toolkit/zksync"
)

// Workers wait while maintenance closes the gate.
func ExampleBarrier() {
	connect, stop := embedded()
	defer stop()
	ctx := context.Background()

	maintenance := zksync.NewBarrier(connect(), "/app/maintenance")
	if err := maintenance.Set(ctx); err != nil {
		log.Fatal(err)
	}

	var workers sync.WaitGroup
	for range 3 {
		gate := zksync.NewBarrier(connect(), "/app/maintenance")
		workers.Go(func() {
			if err := gate.Wait(ctx); err != nil {
				log.Fatal(err)
			}
			fmt.Println("working")
		})
	}

	fmt.Println("maintenance is done")
	if err := maintenance.Remove(ctx); err != nil {
		log.Fatal(err)
	}
	workers.Wait()
	// Output:
	// maintenance is done
	// working
	// working
	// working
}
