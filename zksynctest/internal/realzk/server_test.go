package realzk

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/go-zksync/toolkit/internal/bounds"
)

// startOne starts a server or skips; how loudly is not decided here.
func startOne(t *testing.T) *Cluster {
	t.Helper()
	rt, err := FindRuntime()
	if err != nil {
		t.Skip(err)
	}
	config := NewConfig(1)
	config.Dir = t.TempDir()
	c, err := Start(t.Context(), rt, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// A server whose port is taken starts on another port behind the same link.
func TestStartMovesFromTakenPorts(t *testing.T) {
	t.Parallel()
	c := startOne(t)
	front, err := c.NewFront()
	if err != nil {
		t.Fatal(err)
	}
	link, err := front.Addr(1)
	if err != nil {
		t.Fatal(err)
	}
	old := c.servers[0].addr()
	if err := c.Kill(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	intruder, err := net.Listen("tcp4", old)
	if err != nil {
		t.Fatal(err)
	}
	defer intruder.Close()
	if err := c.Start(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if now := c.servers[0].addr(); now == old {
		t.Errorf("still at %s", old)
	}
	status, err := askStatus(t.Context(), link)
	if err != nil || status.Mode != ModeStandalone {
		t.Errorf("by way of the link: %+v, %v", status, err)
	}
}

// Every call on a closed cluster fails with ErrClosed.
func TestClosedClusterDoesNothing(t *testing.T) {
	t.Parallel()
	c := startOne(t)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context(), 1); !errors.Is(err, ErrClosed) {
		t.Errorf("Start: %v", err)
	}
	if err := c.Kill(t.Context(), 1); !errors.Is(err, ErrClosed) {
		t.Errorf("Kill: %v", err)
	}
	if err := c.WaitReady(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("WaitReady: %v", err)
	}
	if leader := c.Leader(t.Context()); leader != 0 {
		t.Errorf("server %d leads", leader)
	}
	if tail := c.LogTail(1); strings.Count(tail, "\n") == 0 {
		t.Errorf("the log of a closed cluster: %q", tail)
	}
}

// Restarts of one server at the same time take turns, and all succeed.
func TestRestartsTakeTurns(t *testing.T) {
	bounds.Long(t)
	t.Parallel()
	c := startOne(t)
	done := make(chan error)
	for range 4 {
		go func() { done <- c.Restart(t.Context(), 1) }()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if status, err := askStatus(t.Context(), c.servers[0].addr()); err != nil || !status.Serving() {
		t.Errorf("after concurrent restarts: %+v, %v", status, err)
	}
}
