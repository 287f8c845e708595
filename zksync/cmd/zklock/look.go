package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
)

// A whoCommand shows the participants of a path.
type whoCommand struct{ path string }

func (c *whoCommand) flags(*flag.FlagSet) {}

func (c *whoCommand) parse(args []string) (err error) {
	c.path, err = onePath(args)
	return err
}

func (c *whoCommand) run(ctx context.Context, p *program) int {
	nobody := false
	status := p.connected(ctx, func(ctx context.Context, m *session.Manager) error {
		found, beside, err := inspect(ctx, m, c.path)
		if errors.Is(err, zk.ErrNoNode) {
			// The servers may remove the directory of a lock that nobody uses.
			found, err = &zksync.Inspection{Path: c.path, Kind: zksync.KindEmpty}, nil
		}
		if err != nil {
			return err
		}
		e := entryOf(found)
		e.Beside = beside
		// The clients that wait at a queue or a barrier leave nothing there.
		nobody = len(e.Participants) == 0 && e.Kind != zksync.KindQueue && e.Kind != zksync.KindBarrier
		if p.json {
			printJSON(p.stdout, e)
			return nil
		}
		fmt.Fprintf(p.stdout, "%s: %v", e.Path, e.Kind)
		if len(e.Clients) > 0 {
			fmt.Fprintf(p.stdout, " (%s)", e.clients())
		}
		if e.Kind == zksync.KindQueue {
			fmt.Fprintf(p.stdout, ", %d messages", e.Depth)
		}
		fmt.Fprintln(p.stdout)
		if nobody {
			fmt.Fprintf(p.stdout, "nobody holds %s or waits for it\n", e.Path)
		}
		if e.Beside > 0 {
			fmt.Fprintf(p.stdout, "contenders of other kinds at %s, not listed: %d; these kinds do not exclude each other and need paths of their own\n", e.Path, e.Beside)
		}
		if len(e.Participants) == 0 {
			return nil
		}
		t := newTable(p.stdout, "STATE", "CLASS", "ID", "SESSION", "TOKEN", "SINCE", "AGE", "CLIENT")
		for _, c := range e.Participants {
			t.row(c.state(), c.Class.String(), c.ID, c.Session, strconv.FormatInt(c.Token, 10), c.Since.Format(time.RFC3339), age(c.Since).String(), string(c.Client))
		}
		return t.Flush()
	})
	if status == 0 && nobody {
		return statusConflict
	}
	return status
}

// An lsCommand lists the primitives below a path.
type lsCommand struct{ path string }

func (c *lsCommand) flags(*flag.FlagSet) {}

func (c *lsCommand) parse(args []string) (err error) {
	c.path, err = onePath(args)
	return err
}

// maxInspected is how many paths are inspected at once.
const maxInspected = 16

func (c *lsCommand) run(ctx context.Context, p *program) int {
	return p.connected(ctx, func(ctx context.Context, m *session.Manager) error {
		// The readable children are shown even if other children cannot be read.
		all, failed := below(ctx, m, c.path)
		if all == nil && failed != nil {
			return failed
		}
		if p.json {
			entries := make([]entry, len(all))
			for i, found := range all {
				entries[i] = entryOf(found)
			}
			printJSON(p.stdout, entries)
			return failed
		}
		t := newTable(p.stdout, "PATH", "KIND", "DEPTH", "HOLDER", "AGE", "CLIENTS")
		for _, found := range all {
			e := entryOf(found)
			holder, since := "", ""
			if holders := e.holders(); len(holders) > 0 {
				holder, since = orUnnamed(holders[0].ID), age(holders[0].Since).String()
				if len(holders) > 1 {
					holder += fmt.Sprintf(" and %d more", len(holders)-1)
				}
			}
			t.row(e.Path, e.Kind.String(), strconv.Itoa(e.Depth), holder, since, e.clients())
		}
		return errors.Join(t.Flush(), failed)
	})
}

// below inspects the children that a path has at the time of the call. An error beside a list that is not nil is about
// the children that the list lacks.
func below(ctx context.Context, m *session.Manager, path string) ([]*zksync.Inspection, error) {
	var names []string
	err := m.Do(ctx, func(ctx context.Context, s *session.Session) (err error) {
		if err = s.SyncQuorum(ctx, path); err == nil {
			names, _, err = s.Children(ctx, path)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	prefix := path + "/"
	if path == "/" {
		prefix = "/"
	}
	all, errs := make([]*zksync.Inspection, len(names)), make([]error, len(names))
	slots := make(chan struct{}, maxInspected)
	var wg sync.WaitGroup
	for i, name := range names {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			all[i], errs[i] = zksync.Inspect(ctx, m, prefix+name)
			if errors.Is(errs[i], zk.ErrNoNode) {
				errs[i] = nil // deleted since the listing
			}
		})
	}
	wg.Wait()
	found := all[:0]
	for _, inspection := range all {
		if inspection != nil {
			found = append(found, inspection)
		}
	}
	if ctx.Err() != nil {
		// Without a line for each of thousands of children.
		return found, fmt.Errorf("the time of -connect ended with %d of %d children of %s read: %w", len(found), len(names), path, session.Cancelled(ctx))
	}
	return found, errors.Join(errs...)
}

// connected connects, calls f, and returns the exit status.
func (p *program) connected(ctx context.Context, f func(ctx context.Context, m *session.Manager) error) int {
	m, err := p.ensemble.open(ctx, 0)
	if err != nil {
		return p.failed(ctx, err)
	}
	defer unlessStopped(ctx, m.Close)
	bounded, cancel := context.WithTimeout(ctx, p.ensemble.connect)
	defer cancel()
	if err := f(bounded, m); err != nil {
		return p.failed(ctx, err)
	}
	return 0
}
