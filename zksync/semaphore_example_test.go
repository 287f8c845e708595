package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
)

func ExampleSemaphore() {
	m, stop := startExample()
	defer stop()
	ctx := context.Background()

	// However many processes there are, they have ten downloads under way.
	downloads := zksync.NewSemaphore(m, "/limits/downloads", 10)
	if err := downloads.Acquire(ctx, 8); err != nil {
		log.Fatal(err)
	}
	ok, err := downloads.TryAcquire(ctx, 3)
	fmt.Println("three more:", ok, err)
	if err := downloads.Release(8); errors.Is(err, zksync.ErrLost) {
		fmt.Println("there may have been more than ten")
	}
	err = downloads.Acquire(ctx, 11)
	fmt.Println(errors.Is(err, zksync.ErrTooMany))
	// Output:
	// three more: false <nil>
	// true
}

// An operator makes more room while the program runs.
func ExampleWithSizeFrom() {
	m, stop := startExample()
	defer stop()
	ctx := context.Background()

	downloads := zksync.NewSemaphore(m, "/limits/downloads", 1, zksync.WithSizeFrom("/config"))
	if err := downloads.Acquire(ctx, 1); err != nil {
		log.Fatal(err)
	}
	ok, _ := downloads.TryAcquire(ctx, 1)
	fmt.Println("another one:", ok)
	err := m.Do(ctx, func(ctx context.Context, s *session.Session) error {
		_, err := s.Create(ctx, "/config", []byte("2"), 0)
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	ok, _ = downloads.TryAcquire(ctx, 1)
	fmt.Println("another one:", ok)
	// Output:
	// another one: false
	// another one: true
}
