package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A timeline prints the events, a line for each: the time, the order that each
// consumer has in hand, the name, and the event.
type timeline struct {
	mu    sync.Mutex
	out   io.Writer
	start time.Time
	names []string
	lanes []string
}

func newTimeline(out io.Writer, names []string) *timeline {
	return &timeline{out: out, start: time.Now(), names: names, lanes: make([]string, len(names))}
}

func (t *timeline) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.start = time.Now()
	fmt.Fprintf(t.out, "    time %s\n", row(t.names))
}

func row(cells []string) string {
	var b strings.Builder
	for _, cell := range cells {
		fmt.Fprintf(&b, " %4s", cell)
	}
	return b.String()
}

// hand shows what a consumer has in hand from now on, 0 for nothing.
func (t *timeline) hand(consumer, order int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.lanes[consumer] == "X":
	case order == 0:
		t.lanes[consumer] = ""
	default:
		t.lanes[consumer] = strconv.Itoa(order)
	}
}

func (t *timeline) say(who, format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.line(who, fmt.Sprintf(format, args...))
}

// fault tells of the death of a consumer.
func (t *timeline) fault(consumer int, format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.line(">>>", fmt.Sprintf(format, args...))
	t.lanes[consumer] = "X"
}

func (t *timeline) line(who, what string) {
	fmt.Fprintf(t.out, "%7.3fs %s   %-9s %s\n", time.Since(t.start).Seconds(), row(t.lanes), who, what)
}

// short rounds a duration so that it is easy to read.
func short(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}
