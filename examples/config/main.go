// Config is a service that follows a znode with its configuration and the live
// members of its group, without a callback or a watch to arm again.
//
//	go run ./examples/config
//
// It brings its own ZooKeeper server, in this process, and plays the operator and the
// other members too: it changes the configuration, breaks connections and ends
// sessions, and shows what the service makes of it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

const path = "/demo" // the configuration and the members are below

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := play(ctx, os.Stdout); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "config:", err)
		os.Exit(1)
	}
}

// play runs the service on a server of its own, while the rest of its world
// goes through a day in a few seconds.
func play(ctx context.Context, w io.Writer) error {
	out := &printer{w: w, start: time.Now()}
	srv, err := zkserver.New(zkserver.Config{})
	if err != nil {
		return err
	}
	defer srv.Close()
	m, err := session.Connect(ctx, "127.0.0.1:2181", session.WithDialer(srv.Dial))
	if err != nil {
		return err
	}
	defer m.Close()

	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return followConfig(ctx, m, path+"/config", out) })
	g.Go(func() error { return showMembers(ctx, m, path+"/members", out) })
	g.Go(func() error { return day(ctx, srv, m, out) })
	if err := g.Wait(); err != nil && !errors.Is(err, errDayOver) {
		return err
	}
	return nil
}

var errDayOver = errors.New("the day is over")

// pace is the time that the service has to react to one step of the day.
const pace = 400 * time.Millisecond

// day plays everything around the service: its configuration, the other members of its
// group, and faults.
func day(ctx context.Context, srv *zkserver.Server, service *session.Manager, out *printer) error {
	hosts, err := session.Connect(ctx, "127.0.0.1:2181", session.WithDialer(srv.Dial))
	if err != nil {
		return err
	}
	defer hosts.Close()
	of := func(m *session.Manager, do func(id int64) error) error {
		s, err := m.Session(ctx)
		if err != nil {
			return err
		}
		return do(s.ID())
	}
	var second *session.Ephemeral
	config := path + "/config"
	steps := []struct {
		what string
		do   func() error
	}{
		{"looks at a service without a configuration", func() error { return nil }},
		{"writes the first configuration", func() error {
			if err := srv.Create(path, nil); err != nil {
				return err
			}
			return srv.Create(config, []byte(`{"color":"blue"}`))
		}},
		{"starts host-1 and host-2", func() (err error) {
			if _, err = hosts.Ephemeral(ctx, path+"/members/host-1", nil); err == nil {
				second, err = hosts.Ephemeral(ctx, path+"/members/host-2", nil)
			}
			return err
		}},
		{"changes the configuration", func() error { return srv.Set(config, []byte(`{"color":"green"}`)) }},
		{"makes a mistake in the configuration", func() error { return srv.Set(config, []byte(`{"color":`)) }},
		{"breaks the service's connection, and nothing else", func() error { return of(service, srv.Disconnect) }},
		{"changes the configuration while the service is cut off", func() error {
			srv.HangHandshake(true)
			if err := of(service, srv.Disconnect); err != nil {
				return err
			}
			if err := srv.Set(config, []byte(`{"color":"red"}`)); err != nil {
				return err
			}
			time.AfterFunc(pace/2, func() { srv.HangHandshake(false) })
			return nil
		}},
		{"expires the service's session", func() error { return of(service, srv.ExpireSession) }},
		{"expires the hosts' session: they come back by themselves", func() error { return of(hosts, srv.ExpireSession) }},
		{"stops host-2", func() error { return second.Close() }},
		{"stops host-1 as well", hosts.Close},
		{"deletes the configuration", func() error { return srv.Delete(config) }},
	}
	for _, s := range steps {
		out.print("operator", "%s", s.what)
		if err := s.do(); err != nil {
			return fmt.Errorf("%s: %w", s.what, err)
		}
		select {
		case <-time.After(pace):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return errDayOver
}
