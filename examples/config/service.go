package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/watch"
)

// settings is the configuration: the JSON in its znode.
type settings struct {
	Color string `json:"color"`
}

// followConfig applies every configuration that lasts, from the present one on.
// Lost connections and sessions, and a znode that does not exist yet, need no code
// here. A configuration with a mistake leaves the last good one in force.
func followConfig(ctx context.Context, m *session.Manager, path string, out *printer) error {
	for config, err := range watch.Value(ctx, m, path, watch.JSON[settings]).All() {
		switch {
		case err != nil:
			return err
		case !config.State.Exists:
			out.print("config", "none: going by the defaults")
		case config.Err != nil:
			out.print("config", "staying with color %q: %v", config.Value.Color, config.Err)
		default:
			out.print("config", "color %q (version %d)", config.Value.Color, config.State.Stat.Version)
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
