package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The states of a worker in its lane.
const (
	resting = ' '
	waiting = '.'
	holding = '#'
	cutOff  = '!'
)

// A timeline prints the events, a line for each: the time, the state of every worker
// at that moment, the name, and the event.
type timeline struct {
	mu     sync.Mutex
	out    io.Writer
	start  time.Time
	lanes  []byte
	cut    []bool // by worker
	width  int    // of a lane
	colour bool
}

func newTimeline(out io.Writer, workers int) *timeline {
	t := &timeline{out: out, start: time.Now(), width: len(strconv.Itoa(workers)) + 1, colour: isTerminal(out)}
	t.lanes = []byte(strings.Repeat(string(resting), workers))
	t.cut = make([]bool, workers)
	return t
}

// isTerminal tells whether colours are welcome.
func isTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

const (
	plain  = ""
	red    = "\x1b[31m"
	yellow = "\x1b[33m"
	green  = "\x1b[32m"
)

func (t *timeline) begin(st *stage, timeout time.Duration, cfg config) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(t.out, "%d workers take turns under one lock for %v, on %s.\n", cfg.workers, cfg.length, st.about)
	fmt.Fprintf(t.out, "Session timeout %v", timeout)
	if timeout != cfg.timeout {
		fmt.Fprintf(t.out, " (asked for %v)", cfg.timeout)
	}
	fmt.Fprintf(t.out, ". In the lanes: %c holds, %c waits, %c cut off; >>> is what we do to them.\n\n", holding, waiting, cutOff)
	var head strings.Builder
	for i := range t.lanes {
		fmt.Fprintf(&head, "%-*d", t.width, i+1)
	}
	fmt.Fprintf(t.out, "    time   %s\n", strings.TrimRight(head.String(), " "))
	t.start = time.Now()
}

// lane changes the state of a worker in the following lines.
func (t *timeline) lane(worker int, state byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lanes[worker] = state
}

// cutLane shows a worker as cut off, in any state.
func (t *timeline) cutLane(worker int, on bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cut[worker] = on
}

func (t *timeline) say(who, does, format string, args ...any) {
	t.line(plain, fmt.Sprintf("%-4s %-14s %s", who, does, fmt.Sprintf(format, args...)))
}

func (t *timeline) alarm(who, does, format string, args ...any) {
	t.line(red, fmt.Sprintf("%-4s %-14s %s", who, does, fmt.Sprintf(format, args...)))
}

// fault tells what the saboteur does.
func (t *timeline) fault(format string, args ...any) {
	t.line(yellow, ">>>  "+fmt.Sprintf(format, args...))
}

func (t *timeline) line(colour, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var lanes strings.Builder
	for i, state := range t.lanes {
		if t.cut[i] {
			state = cutOff
		}
		fmt.Fprintf(&lanes, "%-*c", t.width, state)
	}
	fmt.Fprintf(t.out, "%8.3fs  %s  %s\n", time.Since(t.start).Seconds(), lanes.String(), t.paint(colour, text))
}

func (t *timeline) paint(colour, text string) string {
	if !t.colour || colour == plain {
		return text
	}
	return colour + text + "\x1b[0m"
}

// end prints the verdict.
func (t *timeline) end(v verdict) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintln(t.out)
	for _, line := range v.lines() {
		fmt.Fprintln(t.out, line)
	}
	if v.ok() {
		fmt.Fprintln(t.out, t.paint(green, "OK: never did two hold the lock at once, and nothing written was lost."))
	} else {
		fmt.Fprintln(t.out, t.paint(red, "FAILED: the lock did not hold what it promises."))
	}
}

// short rounds a duration so that it is easy to read.
func short(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	default:
		return d.Round(10 * time.Millisecond).String()
	}
}
