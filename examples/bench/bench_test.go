package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A whole run, on the embedded server, writes its three files and judges the goals.
func TestRun(t *testing.T) {
	server, err := zkserver.New(zkserver.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	address, err := server.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	var stdout, stderr bytes.Buffer
	args := []string{"-servers", address.String(), "-rounds", "1", "-contenders", "zksync|bare|go-zookeeper", "-rows", "uncontended|8 waiters|Put|1000 waiting|n = 10$|Election|WithLinger|observer", "-out", out}
	if err := run(t.Context(), args, &stdout, &stderr); err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	if !strings.Contains(stdout.String(), "## uncontended Lock + Unlock") || !strings.Contains(stdout.String(), "## Election hand-over, servers 1ms away") || !strings.Contains(stderr.String(), "round 1 of 1: zksync") {
		t.Errorf("the table or the progress is missing:\n%s\n%s", stdout.String(), stderr.String())
	}
	text, err := os.ReadFile(filepath.Join(out, "results.json"))
	if err != nil {
		t.Fatal(err)
	}
	var rep report
	if err := json.Unmarshal(text, &rep); err != nil {
		t.Fatal(err)
	}
	for _, r := range rep.Results {
		if _, ok := r.of(ours); !ok {
			t.Errorf("%s: we did not run: %+v", r.Title, r.Measures)
		}
		// These goals do not depend on the machine.
		for _, v := range r.Verdicts {
			if (v.Goal == "2 requests" || v.Goal == "no request") && !v.Met {
				t.Errorf("%s: %s", r.Title, v)
			}
		}
	}
	for _, name := range []string{"table.md", "chart.svg"} {
		if info, err := os.Stat(filepath.Join(out, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if dump := server.Dump(); strings.Contains(dump, root) {
		t.Errorf("the run left znodes:\n%s", dump)
	}
}

// Invalid flags are refused.
func TestWrongFlags(t *testing.T) {
	for _, args := range [][]string{{}, {"-real", "-servers", "x"}, {"-real", "-rows", "("}, {"-real", "-contenders", "("}, {"-real", "-rounds", "-1"}, {"-real", "-distance", "-1s"}, {"-real", "more"}} {
		if err := run(t.Context(), args, &bytes.Buffer{}, &bytes.Buffer{}); err == nil {
			t.Errorf("%q was accepted", args)
		}
	}
}

// The meter counts requests and their kinds in a byte stream, even if the stream arrives in pieces.
func TestFrameCounter(t *testing.T) {
	var stream []byte
	stream = append(stream, framed(func(b []byte) []byte { return putString(b, make([]byte, 40)) })...) // the handshake
	stream = append(stream, getFrame(1, "/a")...)
	stream = append(stream, setFrame(2, "/a")...)
	stream = append(stream, framed(func(b []byte) []byte { return putInt(putInt(b, -2), 11) })...)
	stream = append(stream, createFrame(3, "/b")...)
	for step := 1; step <= len(stream); step++ {
		var m meter
		var f frameCounter
		for rest := stream; len(rest) > 0; {
			n := min(step, len(rest))
			f.add(&m, rest[:n])
			rest = rest[n:]
		}
		if m.requests.Load() != 3 || m.reads.Load() != 1 {
			t.Fatalf("in writes of %d bytes: %d requests, %d reads; want 3 and 1, without the ping", step, m.requests.Load(), m.reads.Load())
		}
	}
}

// The answer of a contender is parsed, and a malformed answer is an error that quotes the line.
func TestParseAnswer(t *testing.T) {
	s, err := parseAnswer("ok 20 3000 bytes=12.5")
	if err != nil || s.Ops != 20 || s.Elapsed != 3*time.Microsecond || s.Extra["bytes"] != 12.5 {
		t.Errorf("got %+v, %v", s, err)
	}
	if _, err := parseAnswer("none"); err != errNoSuchRow {
		t.Errorf("none: %v", err)
	}
	for _, line := range []string{"", "ok", "ok x 1", "ok 1 x", "ok 1 1 a=b", "failed it fell"} {
		if _, err := parseAnswer(line); err == nil || !strings.Contains(err.Error(), line) {
			t.Errorf("%q: %v", line, err)
		}
	}
}

// A process has no rows about this library: their names have spaces, which separate the words of a job. It goes on
// with the other rows.
func TestProcessHasNoRowsOfOurOwn(t *testing.T) {
	p, err := startProcess("a peer", "localhost:2181", "sh", "-c", `read row path ops rest && echo "ok $ops 1000"`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.run(t.Context(), job{Row: "observer read", Path: "/p", Ops: 3}); err != errNoSuchRow {
		t.Errorf("a row of our own: %v", err)
	}
	if s, err := p.run(t.Context(), job{Row: "lock", Path: "/p", Ops: 3}); err != nil || s.Ops != 3 {
		t.Errorf("the next row: %+v, %v", s, err)
	}
	if err := p.close(); err != nil {
		t.Error(err)
	}
}

// The goals are judged by the medians of the measured rows.
func TestJudge(t *testing.T) {
	row := func(title string, values map[string]float64) result {
		r := result{Title: title}
		for name, v := range values {
			r.Measures = append(r.Measures, measure{Contender: name, Median: v, Extra: map[string]float64{"requests": 2}})
		}
		return r
	}
	first := row("first", map[string]float64{ours: 10})
	r := row("second", map[string]float64{ours: 20, goZK: 60, curator: 50, bare: 18})
	goals := []goal{
		atLeast(2.5, "met", goZK, curator),
		atLeast(2.6, "missed: the best counts", goZK, curator),
		atMost(1.15, "met", bare),
		atMost(1.1, "missed"),
		{text: "met", in: "requests", bound: 2},
		{text: "missed", in: "requests", bound: 1},
		{text: "met", bound: 20},
		{text: "missed", bound: 19},
		{text: "met", than: []string{ours}, in: "first", bound: 2},
		{text: "missed", than: []string{ours}, in: "first", bound: 1.9},
		atLeast(1, "unknown", kazoo),
		{text: "unknown", than: []string{ours}, in: "third", bound: 1},
	}
	goals[3].than = []string{bare}
	for i, v := range judge(goals, r, []result{first, r}) {
		want := strings.Fields(strings.TrimSuffix(goals[i].text, ":"))[0]
		got := "missed"
		if v.Unknown != "" {
			got = "unknown"
		} else if v.Met {
			got = "met"
		}
		if got != strings.TrimSuffix(want, ":") {
			t.Errorf("goal %d: %s, want %s: %+v", i, got, want, v)
		}
	}
}

// A proxy delays each way, also for bytes that follow others, keeps their order, and ends when it is closed.
func TestProxyDelays(t *testing.T) {
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	go func() {
		conn, err := echo.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		io.Copy(conn, conn)
	}()
	const delay = 20 * time.Millisecond
	p, err := newProxy(echo.Addr().String(), delay)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	conn, err := net.Dial("tcp", p.addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	began := time.Now()
	for i := range byte(10) {
		if _, err := conn.Write([]byte{i}); err != nil {
			t.Fatal(err)
		}
	}
	answer := make([]byte, 10)
	if _, err := io.ReadFull(conn, answer); err != nil || !slices.IsSorted(answer) {
		t.Fatalf("%v, %v", answer, err)
	}
	if took := time.Since(began); took < 2*delay {
		t.Errorf("there and back took %v, want %v or more", took, 2*delay)
	}
	if err := p.close(); err != nil {
		t.Error(err)
	}
	if n, err := conn.Read(answer); err == nil {
		t.Errorf("%d bytes came through a closed proxy", n)
	}
}

// A row that is measured away from the servers compares with rows of the same run.
func TestRowsAwayCompareWithEachOther(t *testing.T) {
	titles := make(map[string]bool)
	for _, r := range rowsAt(time.Millisecond) {
		for _, g := range r.goals {
			if g.in != "" && len(g.than) > 0 && !titles[g.in] {
				t.Errorf("%s: no row before it has the title %q", r.title, g.in)
			}
		}
		titles[r.title] = true
	}
	if len(titles) == 0 {
		t.Error("no row is measured away from the servers")
	}
}
