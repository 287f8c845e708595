package zksync_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// wantText wants an error with a text, and without another one.
func wantText(t *testing.T, err error, text, without string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), without) {
		t.Errorf("error %v, want one with %q and without %q", err, text, without)
	}
}

// The errors of calls after Close do not name a session that lives, or a wait that is over. The errors of Join have the path
// once, and name WithIDWait.
func TestTextsOfErrors(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		offer(t, m, queuePath, 0, 1)
		q := zksync.NewQueue(m, queuePath)
		msg := <-q.Messages()
		closeQueue(t, q)
		err := msg.Ack(t.Context())
		wantText(t, err, "the claim on the message has ended: zksync: the queue was closed", "session lost")
		if !errors.Is(err, zksync.ErrLost) || !errors.Is(err, zksync.ErrQueueClosed) {
			t.Errorf("error %v, want ErrLost and ErrQueueClosed", err)
		}
		if _, err := zksync.NewGroup(m, "/g").Join(t.Context(), "a", nil); err != nil {
			t.Fatal(err)
		}
		other := srv.Connect(t)
		_, err = zksync.NewGroup(other, "/g").Join(t.Context(), "a", nil)
		wantText(t, err, "join /g/a: zksync: the id is taken (see WithIDWait)", "ephemeral /g/a")
		_, err = zksync.NewGroup(other, "/g", zksync.WithIDWait()).Join(within(t, time.Minute), "a", nil)
		wantText(t, err, "join /g/a: waiting for the id to be free", "ephemeral /g/a")
		if err := other.Close(); err != nil {
			t.Error(err)
		}
		err = zksync.NewMutex(other, "/m").Lock(t.Context())
		wantText(t, err, "lock /m: ", "wait for a session")
		if !errors.Is(err, zksync.ErrClosed) {
			t.Errorf("error %v, want ErrClosed", err)
		}
	})
}
