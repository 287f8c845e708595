package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// A board shows who works on what, and keeps count.
type board struct {
	mu      sync.Mutex
	out     io.Writer
	start   time.Time
	owners  [shards]string // empty for nobody
	moves   int
	doubles int
}

func (b *board) say(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.print(fmt.Sprintf(format, args...))
}

func (b *board) print(what string) {
	fmt.Fprintf(b.out, "%6.2fs  %-18s", time.Since(b.start).Seconds(), what)
	for _, who := range b.owners {
		initial := "."
		if who != "" {
			initial = strings.ToUpper(who[:1])
		}
		fmt.Fprintf(b.out, " %s", initial)
	}
	fmt.Fprintln(b.out)
}

func (b *board) took(who string, shard int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.owners[shard] != "" {
		b.doubles++
		b.print(fmt.Sprintf("TWO AT SHARD %d", shard))
	}
	b.owners[shard] = who
	b.moves++
	b.print(fmt.Sprintf("%s takes %d", who, shard))
}

func (b *board) left(who string, shard int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.owners[shard] == who {
		b.owners[shard] = ""
	}
}

func (b *board) verdict() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.doubles > 0 {
		fmt.Fprintf(b.out, "%d times two worked on one shard\n", b.doubles)
		return 1
	}
	fmt.Fprintf(b.out, "%d shards, taken %d times, never by two at once\n", len(b.owners), b.moves)
	return 0
}
