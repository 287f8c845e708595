package main

import (
	"bytes"
	"fmt"
	"io"
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
	mu    sync.Mutex
	out   io.Writer
	start time.Time
	lanes []byte
	width int // of a lane
}

func newTimeline(out io.Writer, workers int) *timeline {
	return &timeline{out: out, start: time.Now(), width: len(strconv.Itoa(workers)) + 1, lanes: bytes.Repeat([]byte{resting}, workers)}
}

func (t *timeline) begin(workers int) {
	fmt.Fprintf(t.out, "%d workers take turns under one lock for %v, on a ZooKeeper server in this process.\n", workers, length)
	fmt.Fprintf(t.out, "Session timeout %v. In the lanes: %c holds, %c waits, %c cut off; >>> is what we do to them.\n\n",
		timeout, holding, waiting, cutOff)
	head := "    time   "
	for i := range t.lanes {
		head += fmt.Sprintf("%-*d", t.width, i+1)
	}
	fmt.Fprintln(t.out, strings.TrimRight(head, " "))
	t.start = time.Now()
}

// lane changes the state of a worker in the following lines.
func (t *timeline) lane(worker int, state byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lanes[worker] = state
}

func (t *timeline) say(who, does, format string, args ...any) {
	t.line(fmt.Sprintf("%-4s %-14s %s", who, does, fmt.Sprintf(format, args...)))
}

// fault reports a fault that the workers meet.
func (t *timeline) fault(format string, args ...any) { t.line(">>>  " + fmt.Sprintf(format, args...)) }

func (t *timeline) line(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var lanes strings.Builder
	for _, state := range t.lanes {
		fmt.Fprintf(&lanes, "%-*c", t.width, state)
	}
	fmt.Fprintf(t.out, "%8.3fs  %s  %s\n", time.Since(t.start).Seconds(), lanes.String(), text)
}

// short rounds a duration so that it is easy to read.
func short(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }
