package watch_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/watch"
	"github.com/go-zksync/toolkit/zksynctest"
)

// The loop over All ends with ctx and with the Manager, and yields the reason.
func TestAllEndsWithTheReason(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t)
		cause := errors.New("shutting down")
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		states, reasons := 0, 0
		for state, err := range watch.Node(ctx, m, "/a").All() {
			if err == nil {
				states++
				cancel(cause)
				continue
			}
			reasons++
			if !errors.Is(err, context.Canceled) || !errors.Is(err, cause) || !strings.Contains(err.Error(), "/a") {
				t.Errorf("the last error is %q, want one that is %v and %v and says the path", err, context.Canceled, cause)
			}
			if state.Path != "" || state.Exists {
				t.Errorf("the error comes with %+v", state)
			}
		}
		if states != 1 || reasons != 1 {
			t.Errorf("%d states and %d errors, want one of each", states, reasons)
		}
	})
}

// Leaving the loop over All ends the stream with ErrStopped and leaves nothing of it.
func TestAllEndsTheStreamWhenTheLoopIsLeft(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t)
		st := watch.Node(t.Context(), m, "/a")
		for range st.All() {
			break
		}
		if _, ok := <-st.Events(); ok {
			t.Error("the channel is not closed")
		}
		if err := st.Err(); !errors.Is(err, watch.ErrStopped) {
			t.Errorf("Err is %v, want %v", err, watch.ErrStopped)
		}
		synctest.Wait() // a goroutine that has reported its end may not have ended yet
		if n := running(); n > 0 {
			t.Errorf("%d goroutines are left behind the loop", n)
		}
		// A loop over a stream that has ended says why.
		for _, err := range st.All() {
			if !errors.Is(err, watch.ErrStopped) {
				t.Errorf("a second loop yields %v, want %v", err, watch.ErrStopped)
			}
		}
	})
}

// Events is closed behind the last state, which is received even if the stream has ended since.
func TestEventsKeepsTheLastState(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t)
		st := watch.Node(t.Context(), m, "/a")
		synctest.Wait()
		must(t, m.Close())
		synctest.Wait()
		if got, ok := <-st.Events(); !ok || got.Path != "/a" {
			t.Errorf("got %+v, %v", got, ok)
		}
		if _, ok := <-st.Events(); ok || !errors.Is(st.Err(), session.ErrClosed) {
			t.Errorf("open: %v, Err: %v", ok, st.Err())
		}
	})
}

// Streams can begin, end and be cancelled while the znode changes. The test does all of it at once, for the race
// detector.
func TestStreamsComeAndGo(t *testing.T) {
	srv := zksynctest.Start(t)
	m := srv.Connect(t)
	must(t, srv.Create("/a", nil))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 30 {
				ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
				for _, err := range watch.Node(ctx, m, "/a").All() {
					if err != nil && !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
					}
				}
				for range watch.Children(ctx, m, "/a").All() {
					break
				}
				cancel()
			}
		})
	}
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		wg.Wait()
	}()
	for {
		select {
		case <-finished:
			return
		default:
			must(t, srv.Set("/a", nil))
			runtime.Gosched()
		}
	}
}

// A loop over All that is left while the end of ctx is ending the stream returns when the stream has ended.
func TestLeavingTheLoopWhileCtxEnds(t *testing.T) {
	var delay atomic.Int64
	defer watch.SetApplyHook(func() { time.Sleep(time.Duration(delay.Load())) })()
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		st := watch.Node(ctx, srv.Connect(t), "/a")
		for range st.All() {
			delay.Store(int64(time.Second))
			must(t, srv.Create("/a", nil))
			synctest.Wait() // the source is busy with the event
			cancel()
			synctest.Wait() // another goroutine ends the stream, and waits for the source
			break
		}
		if st.Err() == nil {
			t.Error("the loop was left, and the stream has not ended")
		}
	})
}
