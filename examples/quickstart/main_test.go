package main

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/go-zksync/toolkit/internal/bounds"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// runs runs the program, and shows what it printed if the test fails.
func runs(t *testing.T, ctx context.Context, workers int) (v verdict, out string, err error) {
	t.Helper()
	var b bytes.Buffer
	v, err = run(ctx, workers, func(string) string { return "/lock" }, &b)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("error %v\n%s", err, b.String())
		}
	})
	return v, b.String(), err
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
				bounds.Bubble(t, func(t *testing.T) {
					v, out, err := runs(t, t.Context(), workers)
					if !v.ok() || err != nil {
						t.Errorf("broken promises %q, error %v", v.wrong, err)
					}
					wantIn(t, out, "breaks the connection of", "is back", "expires the session of", "cuts w", "LOST the lock",
						"REFUSED", "heals the network of", "2 refused, 0 accepted", "OK: ")
				})
			})
		}
	}
}

// The quickstart reports a lock that does not exclude, and fails.
func TestBrokenLockFails(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		var out bytes.Buffer
		v, err := run(t.Context(), 3, func(worker string) string { return "/lock-of-" + worker }, &out)
		if err != nil {
			t.Fatal(err)
		}
		if v.ok() {
			t.Errorf("no broken promise for a lock that does not exclude\n%s", out.String())
		}
		wantIn(t, out.String(), "FAILED", "had the lock for", "was refused with token")
	})
}

// The quickstart stops in order within three seconds, no matter when it is interrupted.
func TestStopsInOrder(t *testing.T) {
	for _, after := range []time.Duration{0, time.Millisecond, 900 * time.Millisecond, 2300 * time.Millisecond, 5 * time.Second, 7 * time.Second} {
		t.Run(after.String(), func(t *testing.T) {
			bounds.Bubble(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), after)
				defer cancel()
				start := time.Now()
				v, out, err := runs(t, ctx, 4)
				if took := time.Since(start); took > after+3*time.Second {
					t.Errorf("it took %v to stop", took-after)
				}
				if after == 0 {
					// Before there is anything to judge. Connect has returned with its ctx, and a
					// session that a server has granted at that moment is closed behind it.
					time.Sleep(3 * time.Second)
					return
				}
				if !v.ok() || err != nil {
					t.Errorf("broken promises %q, error %v", v.wrong, err)
				}
				wantIn(t, out, "Stopped by hand", "OK: ")
			})
		})
	}
}

// The columns of the timeline are aligned, its times grow.
func TestTimelineIsATable(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		_, out, _ := runs(t, t.Context(), 3)
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
