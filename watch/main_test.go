package watch_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/watch"
	"github.com/go-zksync/toolkit/zksynctest"
)

func TestMain(m *testing.M) {
	servers.CollectLess()
	goleak.VerifyTestMain(zksynctest.StopSharedAfter(m))
}

// must stops the test at an error of setting it up.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// live is the session that m has at present.
func live(t testing.TB, m *session.Manager) *session.Session {
	t.Helper()
	s, err := m.Session(t.Context())
	must(t, err)
	return s
}

// next receives a state, within a minute.
func next[T any](t testing.TB, st *watch.Stream[T]) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	select {
	case v, ok := <-st.Events():
		if !ok {
			t.Fatal("the stream has ended:", st.Err())
		}
		return v
	case <-ctx.Done():
		t.Fatal("no event within a minute")
	}
	panic("unreachable")
}

// none checks that an hour goes by without an event; in a bubble only.
func none[T any](t testing.TB, st *watch.Stream[T]) {
	t.Helper()
	time.Sleep(time.Hour)
	select {
	case v, ok := <-st.Events():
		t.Fatalf("an event of no change: %+v, %v, error %v", v, ok, st.Err())
	default:
	}
}

// ended waits for the end of a stream, and returns why.
func ended[T any](t testing.TB, st *watch.Stream[T]) error {
	t.Helper()
	limit := time.After(time.Minute)
	for {
		select {
		case _, ok := <-st.Events():
			if !ok {
				return st.Err()
			}
		case <-limit:
			t.Fatal("the stream goes on")
		}
	}
}

// running counts the goroutines of package watch that are in bubbles.
func running() int {
	buf := make([]byte, 4<<20)
	n := 0
	for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		// Goroutines outside of bubbles belong to an earlier test, and end a little after it.
		if header, _, _ := strings.Cut(stack, "\n"); strings.Contains(header, "synctest bubble") && strings.Contains(stack, "toolkit/watch.(") {
			n++
		}
	}
	return n
}

// unseen makes changes while the session of m is without a connection, which lose
// has taken from it.
func unseen(t testing.TB, srv *zksynctest.Server, m *session.Manager, lose func(id int64) error, changes func()) {
	t.Helper()
	id := live(t, m).ID()
	srv.HangHandshake(true)
	must(t, lose(id))
	changes()
	srv.HangHandshake(false)
}
