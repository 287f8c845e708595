package main

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lines are the output without its times.
func lines(out string) []string {
	var found []string
	for line := range strings.Lines(out) {
		found = append(found, strings.Join(strings.Fields(line)[1:], " "))
	}
	return found
}

// The service follows each change of the configuration and of the members, and keeps the last good configuration.
func TestADay(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			var out, errs bytes.Buffer
			if status := run(t.Context(), nil, &out, &errs); status != 0 || errs.Len() > 0 {
				t.Fatalf("exit status %d\n%s%s", status, &out, &errs)
			}
			var config []string
			var members []string
			for _, line := range lines(out.String()) {
				who, what, _ := strings.Cut(line, " ")
				switch who {
				case "config":
					config = append(config, what)
				case "members":
					members = append(members, what)
				}
			}
			want := []string{
				"none: going by the defaults",
				`color "blue" (version 0)`,
				`color "green" (version 1)`,
				`staying with color "green": version 2 is broken: unexpected end of JSON input`,
				`color "red" (version 3)`,
				"none: going by the defaults",
			}
			if got := strings.Join(config, "\n"); got != strings.Join(want, "\n") {
				t.Errorf("the service has seen\n%s", &out)
			}
			// The group comes and goes twice, the second time after its session is lost.
			got := strings.Join(members, "\n")
			if full := "2: host-1, host-2"; strings.Count(got, full) != 2 || !strings.HasSuffix(got, full+"\n1: host-1\n0") {
				t.Errorf("the service has seen\n%s", &out)
			}
		})
	}
}

// The example ends with status 0 when it is interrupted.
func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), pace)
		defer cancel()
		var out, errs bytes.Buffer
		if status := run(ctx, nil, &out, &errs); status != 0 || errs.Len() > 0 {
			t.Errorf("exit status %d\n%s%s", status, &out, &errs)
		}
	})
}

// buffer is a bytes.Buffer that can be looked at while it is written.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// With -servers the example follows the znode of a server that is running.
func TestOnServers(t *testing.T) {
	srv := zksynctest.Start(t)
	m, err := session.Connect(t.Context(), srv.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var out, errs buffer
	status := make(chan int)
	go func() { status <- run(ctx, []string{"-servers", srv.Addr(), "-path", "/x"}, &out, &errs) }()
	appears := func(what string) {
		t.Helper()
		for limit := time.Now().Add(time.Minute); !strings.Contains(out.String(), what); time.Sleep(time.Millisecond) {
			if time.Now().After(limit) {
				t.Fatalf("the output lacks %q\n%s%s", what, &out, &errs)
			}
		}
	}
	appears("1: " + memberName())
	if err := srv.Create("/x/config", []byte(`{"color":"hello"}`)); err != nil {
		t.Fatal(err)
	}
	appears(`color "hello" (version 0)`)
	cancel()
	if status := <-status; status != 0 {
		t.Errorf("exit status %d\n%s", status, &errs)
	}
	if names, _ := srv.Children("/x/members"); len(names) != 0 {
		t.Errorf("members %v are left", names)
	}
}

// Wrong usage ends with the usage status and names the mistake.
func TestUsage(t *testing.T) {
	for _, test := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"-help"}, 0, "-servers"},
		{[]string{"-nonsense"}, exitUsage, "nonsense"},
		{[]string{"more"}, exitUsage, `"more"`},
		{[]string{"-path", "demo"}, exitUsage, "demo"},
		{[]string{"-servers", "a:b:c"}, exitUsage, "a:b:c"},
	} {
		var out, errs bytes.Buffer
		if status := run(t.Context(), test.args, &out, &errs); status != test.status || !strings.Contains(errs.String(), test.want) {
			t.Errorf("%v: exit status %d, %s", test.args, status, &errs)
		}
	}
}
