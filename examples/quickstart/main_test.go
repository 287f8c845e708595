package main

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// runs runs the program, and shows what it printed if the test fails.
func runs(t *testing.T, ctx context.Context, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	status = run(ctx, args, &out, &errs)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("quickstart %s: exit status %d\n%s%s", strings.Join(args, " "), status, out.String(), errs.String())
		}
	})
	return status, out.String(), errs.String()
}

func wantIn(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("the output lacks %q", part)
		}
	}
}

// The quickstart shows each fault and its effect, and the lock holds, with any number of workers.
func TestShowsEverythingAndHolds(t *testing.T) {
	for _, workers := range []int{2, 3, 4, 11} {
		for round := range 5 {
			t.Run(fmt.Sprintf("%d workers, round %d", workers, round), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					status, out, errs := runs(t, t.Context(), "-workers", fmt.Sprint(workers))
					if status != 0 || errs != "" {
						t.Errorf("exit status %d", status)
					}
					wantIn(t, out, "breaks the connection of", "is back", "expires the session of", "cuts w", "LOST the lock",
						"REFUSED", "heals the network of", "2 refused, 0 accepted", "OK: ")
					if strings.Contains(out, "Not seen") {
						t.Error("the default length is too short to see everything")
					}
				})
			})
		}
	}
}

// The quickstart reports a lock that does not exclude, and fails.
func TestBrokenLockFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config{length: 10 * time.Second, workers: 3, timeout: 2 * time.Second}
		st, err := openStage(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer st.close()
		st.lock = func(m *session.Manager, worker string) *zksync.Mutex {
			return zksync.NewMutex(m, lockPath+"-of-"+worker)
		}
		var out bytes.Buffer
		v, err := play(t.Context(), cfg, st, &out)
		if err != nil {
			t.Fatal(err)
		}
		if v.status() != 1 {
			t.Errorf("exit status %d for a lock that does not exclude\n%s", v.status(), out.String())
		}
		wantIn(t, out.String(), "FAILED", "had the lock for", "was refused with token")
	})
}

// The quickstart stops in order within three seconds, no matter when it is interrupted.
func TestStopsInOrder(t *testing.T) {
	for _, after := range []time.Duration{0, time.Millisecond, 900 * time.Millisecond, 2300 * time.Millisecond, 5 * time.Second, 7 * time.Second} {
		t.Run(after.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), after)
				defer cancel()
				start := time.Now()
				status, out, errs := runs(t, ctx)
				if took := time.Since(start); took > after+3*time.Second {
					t.Errorf("it took %v to stop", took-after)
				}
				if after == 0 {
					return // before there is anything to judge
				}
				if status != 0 || errs != "" {
					t.Errorf("exit status %d", status)
				}
				wantIn(t, out, "Stopped by hand", "OK: ")
			})
		})
	}
}

// The error for a bad flag names the flag, its value and the valid values.
func TestBadFlags(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-for", "soon"}, `invalid value "soon" for flag -for`},
		{[]string{"-for", "10ms"}, "-for 10ms: want at least 1s"},
		{[]string{"-workers", "1"}, "-workers 1: want 2 to 50"},
		{[]string{"-timeout", "1ms"}, "-timeout 1ms: want"},
		{[]string{"-server", "x"}, "flag provided but not defined: -server"},
		{[]string{"-servers", "host:port"}, `invalid connection string "host:port"`},
		{[]string{"localhost:2181"}, `unexpected argument "localhost:2181"`},
	} {
		status, out, errs := runs(t, t.Context(), c.args...)
		if status != 2 || out != "" {
			t.Errorf("%v: exit status %d, output %q", c.args, status, out)
		}
		if !strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: said %q, want one line with %q", c.args, errs, c.want)
		}
	}
}

// The help lists every flag.
func TestHelp(t *testing.T) {
	status, _, errs := runs(t, t.Context(), "-help")
	if status != 0 {
		t.Errorf("exit status %d", status)
	}
	wantIn(t, errs, "-servers host:port,...", "-for duration", "-workers int", "-timeout duration")
}

// Without a server the quickstart fails after 15 s with an error that names the address.
func TestNoServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		status, _, errs := runs(t, t.Context(), "-servers", "127.0.0.1:1")
		if status != 1 {
			t.Errorf("exit status %d", status)
		}
		wantIn(t, errs, "127.0.0.1:1", "no session within 15s")
	})
}

// With -servers the quickstart runs over TCP on any server, and expires no session by force.
func TestServers(t *testing.T) {
	test := func(t *testing.T, servers string) {
		status, out, errs := runs(t, t.Context(), "-servers", servers, "-for", "6s", "-timeout", "2s")
		if status != 0 || errs != "" {
			t.Errorf("exit status %d", status)
		}
		wantIn(t, out, "on the ensemble at "+servers, "breaks the connection of", "cuts w", "LOST the lock", "REFUSED", "OK: ")
	}
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		test(t, zksynctest.Start(t, zksynctest.WithTick(200*time.Millisecond)).Addr())
	})
	t.Run("real", func(t *testing.T) {
		t.Parallel()
		test(t, zksynctest.RealZooKeeper(t, 1, zksynctest.RealTickTime(200*time.Millisecond)).Servers())
	})
}

// The columns of the timeline are aligned, its times grow, and output that is no terminal gets no colours.
func TestTimelineIsATable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, out, _ := runs(t, t.Context(), "-workers", "3")
		_, table, _ := strings.Cut(out, "\n\n")
		table, _, _ = strings.Cut(table, "\n\n")
		rows := strings.Split(table, "\n")
		if rows[0] != "    time   1 2 3" {
			t.Errorf("the head is %q", rows[0])
		}
		row := regexp.MustCompile(`^ *(\d+\.\d{3})s  ([#.! ] ){3}  (w\d   \S.{13} |>>>  )\S`)
		last := -1.0
		for _, r := range rows[1:] {
			m := row.FindStringSubmatch(r)
			if m == nil {
				t.Errorf("out of line: %q", r)
				continue
			}
			at, err := strconv.ParseFloat(m[1], 64)
			if err != nil || at < last {
				t.Errorf("%q comes after %vs", r, last)
			}
			last = at
		}
		if len(rows) < 30 || last < 10 {
			t.Errorf("%d rows, the last at %vs", len(rows), last)
		}
	})
}
