package zksync_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// An acquisition in a directory whose sequence numbers are used up, and whose data do not fit into a request or an answer, fails
// with an error that names the directory, the size of its data, and the option to raise.
func TestSpentCounterBesideLargeData(t *testing.T) {
	for option, limit := range map[string]struct {
		set  session.Option
		want error
	}{
		"WithMaxRequest": {session.WithMaxRequest(1024), session.ErrTooLarge},
		"WithMaxAnswer":  {session.WithMaxAnswer(1024), session.ErrAnswerTooLarge},
	} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			must(t, srv.Create("/locks", nil))
			must(t, srv.Create(path, bytes.Repeat([]byte("x"), 2000)))
			must(t, srv.SetNextSequence(path, 2147483647))
			err := zksync.NewMutex(srv.Connect(t, limit.set), path).Lock(t.Context())
			if !errors.Is(err, limit.want) {
				t.Fatalf("Lock: %v, want %v", err, limit.want)
			}
			for _, part := range []string{"the sequence numbers of " + path + " are used up", "2000 bytes", option} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("Lock: %v, want %q in it", err, part)
				}
			}
		})
	}
}
