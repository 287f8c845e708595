package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

// A messages is the standard error of run. It writes from a goroutine of its own: a standard
// error that nobody reads would otherwise stop the goroutine that kills the command, or keep
// a lock without its command.
type messages struct {
	w       io.Writer
	queue   chan []byte
	dropped atomic.Int64
	written chan struct{} // closed by the goroutine when all of a closed queue is written
}

const (
	maxMessages = 256             // messages that wait for the writer; more are dropped
	flushTime   = 2 * time.Second // how long the end of zklock waits for the writer
)

func newMessages(w io.Writer) *messages {
	// A write to a pipe whose reader has gone would kill zklock by SIGPIPE, and the command
	// would run on. With this call the write returns EPIPE. Ignore would do the same, but the
	// command would inherit it.
	if !signal.Ignored(syscall.SIGPIPE) {
		signal.Notify(brokenPipes, syscall.SIGPIPE)
	}
	m := &messages{w: w, queue: make(chan []byte, maxMessages), written: make(chan struct{})}
	go func() {
		defer close(m.written)
		for text := range m.queue {
			_, _ = m.w.Write(text)
			if n := m.dropped.Swap(0); n > 0 {
				fmt.Fprintf(m.w, "zklock: %d messages are missing here: nobody read the standard error\n", n)
			}
		}
	}()
	return m
}

// brokenPipes is never received from.
var brokenPipes = make(chan os.Signal, 1)

// Write never blocks and never fails. It must not be called after close.
func (m *messages) Write(b []byte) (int, error) {
	select {
	case m.queue <- bytes.Clone(b):
	default:
		m.dropped.Add(1)
	}
	return len(b), nil
}

// close returns when everything is written, and after flushTime at the latest.
func (m *messages) close() {
	close(m.queue)
	select {
	case <-m.written:
	case <-time.After(flushTime):
	}
}
