package watch_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/watch"
	"github.com/go-zksync/toolkit/zksynctest"
)

// A stream whose function calls runtime.Goexit ends, with an error (NewStream defers the end).
func TestStreamWhoseFunctionExits(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t)
		must(t, srv.Create("/a", []byte("1")))
		st := watch.Value(t.Context(), m, "/a", func([]byte) (int, error) { runtime.Goexit(); return 0, nil })
		select {
		case _, ok := <-st.Events():
			if ok || st.Err() == nil {
				t.Errorf("open %v, Err %v, want the end and an error", ok, st.Err())
			}
		case <-time.After(time.Hour):
			t.Error("the stream goes on an hour after its function has exited")
		}
	})
}
