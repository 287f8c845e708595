package main

import (
	"context"
	"path"
	"strings"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
)

// inspect calls zksync.Inspect, which lists the contenders of one kind. It also returns the number of contenders of
// other kinds: children of at that are named like contenders and that Inspect did not list.
func inspect(ctx context.Context, m *session.Manager, at string) (found *zksync.Inspection, beside int, err error) {
	before, err := sequential(ctx, m, at)
	if err != nil {
		return nil, 0, err
	}
	if found, err = zksync.Inspect(ctx, m, at); err != nil {
		return nil, 0, err
	}
	switch found.Kind {
	case zksync.KindLock, zksync.KindRWLock, zksync.KindElection, zksync.KindSemaphore:
	default:
		// Messages have sequence numbers, too, and children of other programs may.
		return found, 0, nil
	}
	after, err := sequential(ctx, m, at)
	for _, p := range found.Participants {
		delete(after, path.Base(p.Path))
	}
	for name := range after {
		// A child in one of the lists alone may be a contender that has joined or left meanwhile.
		if before[name] {
			beside++
		}
	}
	return found, beside, err
}

// sequential returns the names of the children of a path that end with a sequence number.
func sequential(ctx context.Context, m *session.Manager, at string) (names map[string]bool, err error) {
	const digits = 10
	err = m.Do(ctx, func(ctx context.Context, s *session.Session) error {
		children, _, err := s.Children(ctx, at)
		names = make(map[string]bool)
		for _, name := range children {
			if n := len(name) - digits; n > 0 && strings.Trim(name[n:], "0123456789") == "" {
				names[name] = true
			}
		}
		if session.ClassOf(err) == session.ClassNoNode {
			return nil
		}
		return err
	})
	return names, err
}
