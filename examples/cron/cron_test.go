package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// When the leader's session ends by force another node takes over, and no slot runs twice.
func TestTakeOver(t *testing.T) {
	var out, errs bytes.Buffer
	if status := run(t.Context(), 10*time.Millisecond, time.Second, &out, &errs); status != 0 || errs.Len() > 0 {
		t.Errorf("status %d, errors %q", status, errs.String())
	}
	text := out.String()
	if strings.Count(text, " leads with token ") < 2 || !strings.Contains(text, "none of them twice") {
		t.Errorf("no take-over in\n%s", text)
	}
	_, after, _ := strings.Cut(text, "by force")
	if !strings.Contains(after, "runs the task") {
		t.Errorf("nothing was run after the accident in\n%s", text)
	}
}

// The verdict reports a slot that ran twice.
func TestVerdict(t *testing.T) {
	var out bytes.Buffer
	l := &journal{out: &out, ran: map[int64][]string{1: {"a"}, 2: {"a", "b"}}}
	if l.verdict() != 1 || !strings.Contains(out.String(), "slot 2") {
		t.Errorf("a slot that was run twice: %s", out.String())
	}
}
