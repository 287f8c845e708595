package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/watch"
	"github.com/go-zksync/toolkit/zksync"
)

// A watchCommand shows the participants of a path, and each change.
type watchCommand struct{ path string }

func (c *watchCommand) flags(*flag.FlagSet) {}

func (c *watchCommand) parse(args []string) (err error) {
	c.path, err = onePath(args)
	return err
}

func (c *watchCommand) run(ctx context.Context, p *program) int {
	m, err := p.ensemble.open(ctx, 0)
	if err != nil {
		return p.failed(ctx, err)
	}
	defer unlessStopped(ctx, m.Close)
	signalled := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	changed := make(chan struct{}, 1)
	// A semaphore has its participants in directories of its own, and a queue its consumers.
	dirs := []string{c.path, c.path + "/leases", c.path + "/locks", c.path + "/zksync-claims", c.path + "-__lock__"}
	if c.path == "/" {
		dirs = []string{"/", "/leases", "/locks", "/zksync-claims"}
	}
	for _, dir := range dirs {
		follow(cancel, changed, watch.Node(ctx, m, dir))
		follow(cancel, changed, watch.Children(ctx, m, dir))
	}
	seen := make(map[string]participant)
	for {
		select {
		case <-changed:
		case <-ctx.Done():
			return p.failed(signalled, context.Cause(ctx))
		}
		found, err := zksync.Inspect(ctx, m, c.path)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			found = &zksync.Inspection{Path: c.path}
		case ctx.Err() != nil:
			continue
		case err != nil:
			return p.failed(ctx, err)
		}
		p.tell(seen, entryOf(found))
		if out, ok := p.stdout.(*output); ok && out.err != nil {
			return p.failed(signalled, out.err)
		}
	}
}

// follow reports each change of a stream, whose states do not matter, and the end of
// the stream.
func follow[T any](failed context.CancelCauseFunc, changed chan<- struct{}, stream *watch.Stream[T]) {
	go func() {
		for range stream.Events() {
			select {
			case changed <- struct{}{}:
			default: // a change that was not seen yet covers this one
			}
		}
		failed(stream.Err())
	}()
}

// A change is the printed form of a change of participants.
type change struct {
	Time  time.Time `json:"time"`
	Event string    `json:"event"` // joined, holds, left
	participant
}

// tell prints the differences between the participants seen before and the
// participants seen now.
func (p *program) tell(seen map[string]participant, now entry) {
	present := make(map[string]participant)
	for _, one := range now.Participants {
		present[one.key()] = one
	}
	for key, one := range seen {
		if _, ok := present[key]; !ok {
			delete(seen, key)
			p.tellOne("left", one)
		}
	}
	for _, one := range now.Participants {
		before, known := seen[one.key()]
		seen[one.key()] = one
		switch {
		case !known && !one.Holds:
			p.tellOne("joined", one)
		case one.Holds && !before.Holds:
			p.tellOne("holds", one)
		}
	}
}

// key identifies a znode: a name may be used again.
func (p participant) key() string { return fmt.Sprintf("%s %d", p.Path, p.Token) }

func (p *program) tellOne(event string, one participant) {
	now := time.Now().UTC()
	if p.json {
		printJSON(p.stdout, change{now, event, one})
		return
	}
	fmt.Fprintf(p.stdout, "%s  %-6s  %s (%v, session %s, token %d, since %s)\n", now.Format("15:04:05.000"), event, orUnnamed(one.ID), one.Class, one.Session, one.Token, one.Since.Format(time.RFC3339))
}
