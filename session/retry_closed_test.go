package session_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
)

// The end of the Manager is not reported as the end of the caller's context, although the context that Do gives to
// its function ends with the Manager's session. To see this test fail, remove the statement of Manager.Retry that
// replaces the last error.
func TestDoTellsTheEndOfTheManagerFromThatOfItsContext(t *testing.T) {
	for name, first := range map[string]func(srv *zksynctest.Server, id int64){
		"closed": func(*zksynctest.Server, int64) {},
		"lost, then closed": func(srv *zksynctest.Server, id int64) {
			srv.HangHandshake(true)
			srv.Partition(id)
			time.Sleep(2 * timeout)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := connect(t, srv, three)
				id := current(t, m).ID()
				done := make(chan error, 1)
				go func() {
					done <- m.Do(t.Context(), func(ctx context.Context, _ *session.Session) error {
						<-ctx.Done()
						return session.Cancelled(ctx)
					})
				}()
				synctest.Wait()
				first(srv, id)
				m.Close()
				err := <-done
				mustBe(t, err, session.ErrClosed)
				if errors.Is(err, context.Canceled) || session.ClassOf(err) != session.ClassClosed {
					t.Errorf("error %v of class %v, want one of class Closed that is not context.Canceled", err, session.ClassOf(err))
				}
				srv.HangHandshake(false)
			})
		})
	}
}
