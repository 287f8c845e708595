package watch_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/watch"
)

// NewStream reports what its function produces: the newest report replaces a report that was not received, and a report
// of the value that was received last is dropped.
func TestNewStreamMerges(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		reports := make(chan [2]any)
		st := watch.NewStream(t.Context(), "mine", "/x", func(ctx context.Context, report func(any, any)) error {
			for {
				select {
				case r := <-reports:
					report(r[0], r[1])
				case <-ctx.Done():
					return nil
				}
			}
		})
		send := func(values ...[2]any) {
			for _, v := range values {
				reports <- v
			}
			synctest.Wait()
		}
		expect := func(want any) {
			t.Helper()
			select {
			case got := <-st.Events():
				if got != want {
					t.Errorf("got %v, want %v", got, want)
				}
			default:
				t.Errorf("got nothing, want %v", want)
			}
		}
		send([2]any{"a", 1}, [2]any{"b", 2})
		expect("b")
		send([2]any{"again", 2})
		none(t, st)
		send([2]any{"c", 3}, [2]any{"back", 2})
		none(t, st)
		send([2]any{"d", 4})
		expect("d")
		send([2]any{"x", nil})
		expect("x")
		send([2]any{"x", nil})
		expect("x")
	})
}

// A stream of NewStream ends with the reason that its function returns, and leaving the loop ends the function's ctx
// and waits for the function.
func TestNewStreamEnds(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		why := errors.New("why")
		st := watch.NewStream(t.Context(), "mine", "/x", func(_ context.Context, report func(int, any)) error {
			report(1, nil)
			return why
		})
		if got := next(t, st); got != 1 {
			t.Errorf("got %d", got)
		}
		var end *watch.EndError
		if err := ended(t, st); !errors.Is(err, why) || !errors.As(err, &end) || end.Reason != watch.Refused {
			t.Errorf("ended with %+v", err)
		}
		returned := false
		st = watch.NewStream(t.Context(), "mine", "/x", func(ctx context.Context, report func(int, any)) error {
			report(1, nil)
			<-ctx.Done()
			time.Sleep(time.Second)
			returned = true
			return context.Cause(ctx)
		})
		for range st.All() {
			break
		}
		if !returned || !errors.Is(st.Err(), watch.ErrStopped) {
			t.Errorf("the loop is over before produce, or without the reason: %v", st.Err())
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		st = watch.NewStream(ctx, "mine", "/x", func(context.Context, func(int, any)) error {
			t.Error("produce runs although ctx has ended")
			return nil
		})
		if err := ended(t, st); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
