package watch_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
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

// The error of a value that cannot be decoded names the path and the version, and wraps the decoder's error. A field that
// is absent from the data is zero, and does not keep its former value.
func TestValueNamesWhatItCannotDecode(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		type pair struct{ A, B int }
		srv := zksynctest.Start(t)
		must(t, srv.Create("/c", []byte(`{"A":1,"B":2}`)))
		st := watch.Value(t.Context(), srv.Connect(t), "/c", watch.JSON[pair])
		next(t, st)
		must(t, srv.Set("/c", []byte(`{"A":`)))
		var syntax *json.SyntaxError
		err := next(t, st).Err
		if want := "watch value /c: decode version 1: unexpected end of JSON input"; err == nil || err.Error() != want || !errors.As(err, &syntax) {
			t.Errorf("error %v, want %s", err, want)
		}
		must(t, srv.Set("/c", []byte(`{"A":3,"C":4}`)))
		if got := next(t, st); got.Err != nil || got.Value != (pair{A: 3}) {
			t.Errorf("value %+v, error %v; want 3 and the zero", got.Value, got.Err)
		}
	})
}

// Value without a function that decodes ends at once with ErrInvalidOption.
func TestValueWithoutADecoder(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		must(t, srv.Create("/c", nil))
		st := watch.Value[int](t.Context(), srv.Connect(t), "/c", nil)
		var end *watch.EndError
		if err := st.Err(); !errors.Is(err, session.ErrInvalidOption) || !errors.As(err, &end) || end.Reason != watch.Refused {
			t.Errorf("error %v, want a refusal that is ErrInvalidOption", err)
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
