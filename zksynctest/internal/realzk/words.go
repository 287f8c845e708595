package realzk

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

const (
	askTimeout = 2 * time.Second       // for one question to one server
	pollEvery  = 40 * time.Millisecond // between two looks at something awaited
	maxAnswer  = 1 << 20
)

// Modes that a serving server reports.
const (
	ModeStandalone = "standalone"
	ModeLeader     = "leader"
	ModeFollower   = "follower"
)

// Status is the state that a server reports.
type Status struct {
	Mode string // empty when it answers, but does not serve
	Zxid int64
}

// Serving reports whether the server takes requests of clients.
func (s Status) Serving() bool { return s.Mode != "" }

// Ask sends a four-letter word to a server and returns the answer.
func Ask(ctx context.Context, addr, word string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var dialer net.Dialer
	nc, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", fmt.Errorf("ask %s: %w", word, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = nc.SetDeadline(time.Unix(1, 0)) })
	defer func() {
		stop()
		_ = nc.Close()
	}()
	if _, err := io.WriteString(nc, word); err != nil {
		return "", fmt.Errorf("ask %s: %w", word, err)
	}
	answer, err := io.ReadAll(io.LimitReader(nc, maxAnswer))
	if err != nil {
		return "", fmt.Errorf("ask %s: %w", word, err)
	}
	return string(answer), nil
}

// Metric finds a number in the answer to mntr.
func Metric(answer, name string) (int, bool) {
	for line := range strings.Lines(answer) {
		if value, ok := strings.CutPrefix(line, name); ok {
			n, err := strconv.Atoi(strings.TrimSpace(value))
			return n, err == nil
		}
	}
	return 0, false
}

// askStatus asks a server for its status. An answer without a mode is not an error.
func askStatus(ctx context.Context, addr string) (Status, error) {
	answer, err := Ask(ctx, addr, "srvr")
	if err != nil {
		return Status{}, err
	}
	if answer == "" {
		return Status{}, fmt.Errorf("ask srvr: %s closed the connection", addr)
	}
	return parseStatus(answer), nil
}

func parseStatus(answer string) Status {
	var status Status
	for line := range strings.Lines(answer) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "Mode":
			status.Mode = value
		case "Zxid":
			if zxid, err := strconv.ParseInt(value, 0, 64); err == nil {
				status.Zxid = zxid
			}
		}
	}
	return status
}

// poll calls look until it returns true or an error, or until ctx ends.
func poll(ctx context.Context, what string, look func(context.Context) (ok bool, err error)) error {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		ok, err := look(ctx)
		if ok || err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("waited for %s: %w", what, context.Cause(ctx))
		}
	}
}
