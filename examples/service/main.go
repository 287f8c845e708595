// Service runs a job on exactly one of its instances: start it on as many
// machines as you like, and stop and crash them as you like.
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
)

func main() {
	servers := flag.String("servers", "localhost:2181", "ZooKeeper servers, as host:port,host:port/chroot")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	m, err := session.Connect(ctx, *servers)
	if err != nil {
		log.Fatal(err)
	}
	err = serve(ctx, m, report)
	m.Close() // gives the lock back at once, so that the next instance need not wait
	if err != nil {
		log.Fatal(err)
	}
}

// serve runs job under the lock until ctx ends: here, or in another instance.
func serve(ctx context.Context, m *session.Manager, job func(context.Context) error) error {
	mu := zksync.NewMutex(m, "/services/report/lock")
	for {
		err := mu.Do(ctx, job) // waits for its turn; job's context ends if the lock is lost
		switch {
		case ctx.Err() != nil:
			return nil // we were told to stop
		case errors.Is(err, zksync.ErrLost) && !errors.Is(err, zksync.ErrClosed):
			log.Printf("standing in line again: %v", err)
		default:
			return err
		}
	}
}

// report is the work. It ends when its context does, and hands the fencing token
// to whatever it writes to.
func report(ctx context.Context) error {
	token, _ := zksync.Token(ctx)
	log.Printf("it is my turn, with token %d", token)
	ticker := time.NewTicker(10 * time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			log.Print("reporting")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
