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

// A Mutex with the layout of kazoo shares its path with the locks of Python programs.
func ExampleWithLayout() {
	m, stop := startExample()
	defer stop()
	ctx := context.Background()

	mu := zksync.NewMutex(m, "/locks/report", zksync.WithLayout(zksync.LayoutKazoo))
	if err := mu.Lock(ctx); err != nil {
		log.Fatal(err)
	}
	line, err := mu.Contenders(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(strings.HasSuffix(line[0].Path, "__lock__0000000000"))
	if err := mu.Unlock(); err != nil {
		log.Fatal(err)
	}
	// Output: true
}

// A program reads the layout of its locks from its configuration.
func ExampleLayout() {
	m, stop := startExample()
	defer stop()

	for _, l := range []zksync.Layout{zksync.LayoutKazoo, zksync.LayoutLeaderSelector} {
		err := zksync.NewMutex(m, "/locks/report", zksync.WithLayout(l)).Lock(context.Background())
		fmt.Println(l, errors.Is(err, zksync.ErrInvalidOption))
	}
	// Output:
	// LayoutKazoo false
	// LayoutLeaderSelector true
}

// Work that goes on after its leadership has ended keeps Run for ten milliseconds. Then
// another candidate may lead beside it.
func ExampleWithStopTimeout() {
	m, stop := startExample()
	defer stop()

	ctx, cancel := context.WithCancel(context.Background())
	finish, finished := make(chan struct{}), make(chan struct{})
	e := zksync.NewElection(m, "/master", zksync.WithStopTimeout(10*time.Millisecond))
	err := e.Run(ctx, func(context.Context) error {
		defer close(finished)
		cancel()
		<-finish // the work does not look at its context
		return nil
	})
	fmt.Println(errors.Is(err, zksync.ErrStillRunning))
	close(finish)
	<-finished
	// Output: true
}

// An option that several primitives have is written once.
func ExampleMaxWaitOption() {
	m, stop := startExample()
	defer stop()

	patience := zksync.WithMaxWait(10 * time.Millisecond)
	gate, queue := zksync.NewBarrier(m, "/gate", patience), zksync.NewQueue(m, "/jobs", patience)
	defer queue.Close()
	if err := gate.Set(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Println(errors.Is(gate.Wait(context.Background()), zksync.ErrMaxWait))
	// Output: true
}

// A function that passes options on names the type of its constructor.
func ExampleMutexOption() {
	m, stop := startExample()
	defer stop()

	lock := func(name string, opts ...zksync.MutexOption) *zksync.Mutex {
		return zksync.NewMutex(m, "/locks/"+name, opts...)
	}
	mu := lock("report", zksync.WithLinger(time.Second), zksync.WithID("host-a:4711"))
	fmt.Println(mu.Do(context.Background(), func(context.Context) error { return nil }))
	// Output: <nil>
}

// Inspect reports for each participant the client library that has created its znode.
func ExampleInspection_Holders() {
	m, stop := startExample()
	defer stop()
	ctx := context.Background()

	uploads := zksync.NewSemaphore(m, "/uploads", 3, zksync.WithID("host-a:4711"))
	if err := uploads.Acquire(ctx, 2); err != nil {
		log.Fatal(err)
	}
	found, err := zksync.Inspect(ctx, m, "/uploads")
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range found.Holders() {
		fmt.Println(p.ID, p.Class, p.Client)
	}
	if err := uploads.Release(2); err != nil {
		log.Fatal(err)
	}
	// Output:
	// host-a:4711 unit zksync
	// host-a:4711 unit zksync
}

// A program leaves locks alone that other clients hold.
func ExampleClient() {
	m, stop := startExample()
	defer stop()
	ctx := context.Background()

	mu := zksync.NewMutex(m, "/locks/report", zksync.WithLayout(zksync.LayoutKazoo), zksync.WithID("host-a:4711"))
	if err := mu.Lock(ctx); err != nil {
		log.Fatal(err)
	}
	found, err := zksync.Inspect(ctx, m, "/locks/report")
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range found.Clients {
		fmt.Println(c, c == zksync.ClientCurator)
	}
	if err := mu.Unlock(); err != nil {
		log.Fatal(err)
	}
	// Output: zksync false
}

// The class tells readers from writers in the line of an RWMutex.
func ExampleContenderClass() {
	m, stop := startExample()
	defer stop()
	ctx := context.Background()

	rw := zksync.NewRWMutex(m, "/locks/report")
	if err := rw.RLock(ctx); err != nil {
		log.Fatal(err)
	}
	line, err := rw.Contenders(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(line[0].Class, line[0].Class == zksync.ContenderReader)
	if err := rw.RUnlock(); err != nil {
		log.Fatal(err)
	}
	// Output: reader true
}

// Inspect finds out which primitive uses a path.
func ExampleKind() {
	m, stop := startExample()
	defer stop()
	ctx := context.Background()

	if err := zksync.NewBarrier(m, "/gate").Set(ctx); err != nil {
		log.Fatal(err)
	}
	found, err := zksync.Inspect(ctx, m, "/gate")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(found.Kind, found.Kind == zksync.KindBarrier)
	// Output: barrier true
}
