package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/go-zksync/toolkit/internal/bounds"
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
		bounds.Bubble(t, func(t *testing.T) {
			var out bytes.Buffer
			if err := play(t.Context(), &out); err != nil {
				t.Fatalf("%v\n%s", err, &out)
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
				`staying with color "green": watch value /demo/config: decode version 2: unexpected end of JSON input`,
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

// The example ends soon when it is interrupted, with the reason.
func TestInterrupted(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), pace)
		defer cancel()
		var out bytes.Buffer
		if err := play(ctx, &out); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want the end of ctx\n%s", err, &out)
		}
	})
}
