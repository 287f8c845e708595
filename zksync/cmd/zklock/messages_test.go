package main

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// A blockedWriter takes nothing until it is released.
type blockedWriter struct{ entered, released chan struct{} }

func (w *blockedWriter) Write(b []byte) (int, error) {
	w.entered <- struct{}{}
	<-w.released
	return len(b), nil
}

// A zklock that waits gets the lock and runs its command, and ends by a signal, also while nobody reads its explanation. The limit
// of -wait ends no hold. The lines to break are those of messages.Write, and the call of inTime in acquire.
func TestWaitWithoutAReaderOfStderr(t *testing.T) {
	t.Parallel()
	for _, signal := range []bool{false, true} {
		t.Run(fmt.Sprintf("signal=%v", signal), func(t *testing.T) {
			t.Parallel()
			srv := zksynctest.Start(t)
			mu := zksync.NewMutex(srv.Connect(t), "/locks/a")
			if err := mu.Lock(t.Context()); err != nil {
				t.Fatal(err)
			}
			w, out := &blockedWriter{make(chan struct{}, 100), make(chan struct{})}, &buffer{}
			defer close(w.released)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			status := make(chan int, 1)
			go func() {
				status <- run(ctx, []string{"run", "-servers", srv.Addr(), "-wait", "5s", "/locks/a", "--", "sh", "-c", "sleep 2.5; echo ran"}, strings.NewReader(""), out, w)
			}()
			<-w.entered
			want, says := 0, "ran\n"
			if signal {
				cancel(signalError{syscall.SIGTERM})
				want, says = 128+int(syscall.SIGTERM), ""
			} else if err := mu.Unlock(); err != nil {
				t.Fatal(err)
			}
			select {
			case s := <-status:
				if s != want || out.String() != says {
					t.Errorf("status %d and %q, want %d and %q", s, out, want, says)
				}
			case <-time.After(15 * time.Second):
				t.Error("zklock did not end")
			}
		})
	}
}

// Messages that nobody reads are dropped and counted, and close writes all messages that were kept. The lines to break are those with
// dropped in newMessages, and the wait for written in close.
func TestDroppedMessagesAreCounted(t *testing.T) {
	w := &blockedWriter{make(chan struct{}, 2*maxMessages), make(chan struct{})}
	m := newMessages(w)
	_, _ = m.Write([]byte("first"))
	<-w.entered
	for range maxMessages + 7 {
		_, _ = m.Write([]byte("more"))
	}
	if n := m.dropped.Load(); n != 7 {
		t.Errorf("%d messages were dropped, want 7", n)
	}
	close(w.released)
	m.close()
	// The first message, the number of dropped messages, and the messages that were kept.
	if n := 1 + len(w.entered); n != maxMessages+2 {
		t.Errorf("%d writes, want %d", n, maxMessages+2)
	}
}
