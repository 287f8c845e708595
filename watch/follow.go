package watch

import (
	"context"
	"errors"

	"github.com/go-zksync/toolkit/session"
)

// followSessions calls begin with an Inbox of one session after the other, apply with what the Inbox
// delivers, and begin with nil when the session has ended. It returns why it ended: the end of ctx,
// the end of the Manager, or the error of apply.
func followSessions(ctx context.Context, m *session.Manager, begin func(*session.Inbox), apply func(*session.Delivery) error) error {
	for {
		s, err := m.Session(ctx)
		if err == nil {
			in := s.NewInbox()
			begin(in)
			err = receive(ctx, in, apply)
			begin(nil)
			in.Close()
		}
		// An error that matches both ErrClosed and ErrLost reports the end of the Manager:
		// no other session follows.
		if ctx.Err() != nil || errors.Is(err, session.ErrClosed) || !errors.Is(err, session.ErrLost) {
			return err
		}
	}
}

// receive applies the deliveries of an Inbox in order, until apply or the session fails.
func receive(ctx context.Context, in *session.Inbox, apply func(*session.Delivery) error) error {
	for {
		batch, err := in.Receive(ctx)
		if err != nil {
			return err
		}
		for i := range batch {
			testHookApply()
			if err := apply(&batch[i]); err != nil {
				return err
			}
		}
	}
}

// testHookApply runs before each delivery is applied. The tests of this package
// pause in it, so that a connection gets ahead of its mirror.
var testHookApply = func() {}
