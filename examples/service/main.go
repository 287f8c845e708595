// Service runs a job in one of its instances at a time.
package main

import (
	"context"
	"flag"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
)

func main() {
	servers := flag.String("servers", "localhost:2181", "ZooKeeper servers, as host:port,host:port/chroot")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	m, err := session.Connect(ctx, *servers, session.WithSlog(slog.Default()))
	if err != nil {
		log.Fatal(err)
	}
	err = serve(ctx, m, report)
	m.Close() // ends the session at once, so that the next instance need not wait
	if err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

// serve runs job whenever this instance is the leader, until ctx ends. The context
// of job ends before another instance can become the leader.
func serve(ctx context.Context, m *session.Manager, job func(context.Context) error) error {
	return zksync.NewElection(m, "/services/report").Run(ctx, job)
}

func report(ctx context.Context) error {
	token, _ := zksync.Token(ctx) // the storage refuses writes whose token is older than the newest
	log.Printf("leading, with token %d", token)
	<-ctx.Done() // the work goes here
	return context.Cause(ctx)
}
