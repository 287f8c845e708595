package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/watch"
)

// serve is the service: it follows its configuration and its group until ctx
// ends.
func serve(ctx context.Context, m *session.Manager, path string, out *printer) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return followConfig(ctx, m, path+"/config", out) })
	g.Go(func() error { return showMembers(ctx, m, path+"/members", out) })
	return g.Wait()
}

// followConfig applies every configuration that lasts, from the present one on.
// It need not care for lost connections and sessions, nor for whether the znode
// exists yet.
func followConfig(ctx context.Context, m *session.Manager, path string, out *printer) error {
	for state, err := range watch.Node(ctx, m, path).All() {
		switch {
		case err != nil:
			return err
		case !state.Exists:
			out.print("config", "none: going by the defaults")
		default:
			out.print("config", "%s (version %d)", state.Data, state.Stat.Version)
		}
	}
	return nil
}

// showMembers shows who is in the group whenever that changes.
func showMembers(ctx context.Context, m *session.Manager, path string, out *printer) error {
	for names, err := range watch.Children(ctx, m, path).All() {
		if err != nil {
			return err
		}
		out.print("members", "%d: %s", len(names), strings.Join(names, ", "))
	}
	return nil
}

// A printer writes one line at a time, with the time since the start.
type printer struct {
	mu    sync.Mutex
	w     io.Writer
	start time.Time
}

func (p *printer) print(who, format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	line := fmt.Sprintf("%5.1fs  %-9s %s", time.Since(p.start).Seconds(), who, fmt.Sprintf(format, args...))
	fmt.Fprintln(p.w, strings.TrimRight(line, " :"))
}
