package watch_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/watch"
	"github.com/go-zksync/toolkit/zksynctest"
)

type color struct{ Color string }

// Value reports decoded values, and the error and the last good value for data that cannot be decoded. The absence of
// the znode is reported as such.
func TestValueDecodes(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		st := watch.Value(t.Context(), srv.Connect(t), "/c", watch.JSON[color])
		expect := func(exists bool, value string, broken bool) {
			t.Helper()
			got := next(t, st)
			var syntax *json.SyntaxError
			if got.State.Exists != exists || got.Value.Color != value || errors.As(got.Err, &syntax) != broken {
				t.Errorf("told %+v, want %q, existing: %v, broken: %v", got, value, exists, broken)
			}
		}
		expect(false, "", false)
		must(t, srv.Create("/c", []byte("nonsense")))
		expect(true, "", true)
		must(t, srv.Set("/c", []byte(`{"Color":"blue"}`)))
		expect(true, "blue", false)
		must(t, srv.Set("/c", []byte(`{"Color":`)))
		expect(true, "blue", true)
		must(t, srv.Set("/c", []byte(`{"Color":"red"}`)))
		expect(true, "red", false)
		must(t, srv.Delete("/c"))
		expect(false, "red", false)
		must(t, srv.Create("/c", nil))
		expect(true, "red", true)
		must(t, srv.Set("/c", []byte(`{}`)))
		expect(true, "", false)
		if st.Err() != nil {
			t.Error(st.Err())
		}
	})
}

// A slow decoder delays its own stream alone, and decodes the newest value next.
func TestValueDecodesOnItsOwn(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t)
		must(t, srv.Create("/c", []byte("0")))
		hold := make(chan struct{})
		var decoded atomic.Int32
		slow := watch.Value(t.Context(), m, "/c", func(data []byte) (string, error) {
			decoded.Add(1)
			<-hold
			return string(data), nil
		})
		other := watch.Node(t.Context(), m, "/c")
		next(t, other)
		synctest.Wait() // the first value is being decoded
		for _, data := range []string{"1", "2", "3"} {
			must(t, srv.Set("/c", []byte(data)))
			if got := next(t, other); string(got.Data) != data {
				t.Errorf("another stream is told %q, want %q", got.Data, data)
			}
		}
		synctest.Wait() // the slow stream knows of the newest value, as the other one does
		close(hold)
		synctest.Wait()
		if got := next(t, slow); got.Value != "3" {
			t.Errorf("told %+v", got)
		}
		if n := decoded.Load(); n != 2 {
			t.Errorf("%d values were decoded, want the first and the last", n)
		}
		none(t, slow)
	})
}

// A Value whose loop was left leaves nothing.
func TestValueThatIsLeft(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		for range watch.Value(context.Background(), srv.Connect(t), "/c", watch.JSON[int]).All() {
			break
		}
		synctest.Wait()
		if n := running(); n > 0 {
			t.Errorf("%d goroutines are left", n)
		}
	})
}

// A Value without a znode has the last value that could be decoded, also if the event of that value was merged.
func TestValueBehindAMergedEvent(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		st := watch.Value(t.Context(), srv.Connect(t), "/v", func(data []byte) (string, error) { return string(data), nil })
		if v := next(t, st); v.Value != "" || v.State.Exists {
			t.Error(v)
		}
		must(t, srv.Create("/v", []byte("good")))
		synctest.Wait() // the event waits for its receiver
		must(t, srv.Delete("/v"))
		synctest.Wait()
		if v := next(t, st); v.Value != "good" || v.State.Exists {
			t.Error(v)
		}
	})
}
