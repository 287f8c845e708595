package realzk

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"
)

// parseStatus reads the mode and the zxid of an answer to srvr, and no mode if the server does not serve.
func TestParseStatus(t *testing.T) {
	for answer, want := range map[string]Status{
		"Zookeeper version: 3.8.0\nZxid: 0x200000007\nMode: leader\nNode count: 5\n": {Mode: ModeLeader, Zxid: 0x200000007},
		"Mode: standalone\r\nZxid: 0x0\r\n":                                          {Mode: ModeStandalone},
		"This ZooKeeper instance is not currently serving requests\n":                {},
		"": {},
	} {
		if got := parseStatus(answer); got != want || got.Serving() != (want.Mode != "") {
			t.Errorf("parseStatus(%q) = %+v, want %+v", answer, got, want)
		}
	}
}

// syncedFollowers reads the number of followers of an answer to mntr, and -1 if it has none.
func TestSyncedFollowers(t *testing.T) {
	for answer, want := range map[string]int{
		"zk_version\t3.8\nzk_synced_followers\t2\n": 2,
		"zk_synced_followers\tmany\n":               -1,
		"zk_server_state\tfollower\n":               -1,
	} {
		if got := syncedFollowers(answer); got != want {
			t.Errorf("syncedFollowers(%q) = %d, want %d", answer, got, want)
		}
	}
}

// Of two servers that claim to lead, the one with the later epoch leads.
func TestLeaderOfTwoIsTheLater(t *testing.T) {
	old, next := Status{Mode: ModeLeader, Zxid: 0x1_00000099}, Status{Mode: ModeLeader, Zxid: 0x2_00000000}
	for i, statuses := range [][]Status{{old, {}, next}, {{Mode: ModeFollower}, old, next}, {old, old, next}} {
		if got := leaderOf(statuses); got != 3 {
			t.Errorf("case %d: server %d leads", i, got)
		}
	}
	if got := leaderOf([]Status{{}, {Mode: ModeFollower}, {}}); got != 0 {
		t.Errorf("server %d leads of none", got)
	}
}

// Ask ends with its context if the server is silent.
func TestAskEndsWithItsContext(t *testing.T) {
	silent, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := Ask(ctx, silent.Addr().String(), "ruok"); err == nil || time.Since(start) > askTimeout {
		t.Errorf("asked for %v: %v", time.Since(start), err)
	}
}

// The error of poll names the condition and has the cause of the context or the error of the check.
func TestPollSaysWhatItWaitedFor(t *testing.T) {
	cause := errors.New("the cause")
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, cause)
	defer cancel()
	err := poll(ctx, "the moon", func(context.Context) (bool, error) { return false, nil })
	if !errors.Is(err, cause) || !strings.Contains(err.Error(), "the moon") {
		t.Errorf("poll: %v", err)
	}
	if err := poll(t.Context(), "an error", func(context.Context) (bool, error) { return false, cause }); !errors.Is(err, cause) {
		t.Errorf("poll: %v", err)
	}
}

// pickPorts picks distinct free ports of its range.
func TestPorts(t *testing.T) {
	ports, err := pickPorts(8)
	if err != nil {
		t.Fatal(err)
	}
	defer releasePorts(ports...)
	seen := make(map[int]bool)
	for _, port := range ports {
		if port < firstPort || port >= lastPort || seen[port] || !isFree(port) {
			t.Errorf("port %d of %v", port, ports)
		}
		seen[port] = true
	}
	busy, err := net.Listen("tcp4", loopback(ports[0]))
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	if isFree(ports[0]) {
		t.Errorf("port %d is said to be free", ports[0])
	}
}
