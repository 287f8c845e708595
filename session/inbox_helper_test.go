package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/session"
)

// inbox opens an Inbox that the test closes.
func inbox(t *testing.T, s *session.Session) *session.Inbox {
	in := s.NewInbox()
	t.Cleanup(in.Close)
	return in
}

// receive waits for n deliveries and describes them. Connections are left out.
func receive(t *testing.T, in *session.Inbox, n int) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	var all []string
	for len(all) < n {
		batch, err := in.Receive(ctx)
		if err != nil {
			t.Fatalf("%v, after %d of %d deliveries: %v", err, len(all), n, all)
		}
		for i := range batch {
			if batch[i].Kind != session.InboxConnection {
				all = append(all, describe(t, &batch[i]))
			}
		}
	}
	return all
}

func describe(t *testing.T, d *session.Delivery) string {
	t.Helper()
	switch {
	case d.Kind == session.InboxPost:
		return fmt.Sprint("post ", d.Tag)
	case d.Kind == session.InboxEvent:
		return fmt.Sprint(d.Event, " ", d.Tag)
	case d.Err != nil:
		var e *session.Error
		if !errors.As(d.Err, &e) {
			t.Errorf("an error that names no operation: %v", d.Err)
		}
		return fmt.Sprint(d.Tag, ": ", d.Err)
	}
	return fmt.Sprint("answer ", d.Tag)
}

// nothingArrives checks that nothing is delivered within a minute of the bubble.
func nothingArrives(t *testing.T, in *session.Inbox) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		batch, err := in.Receive(ctx)
		if err != nil {
			mustBe(t, err, context.DeadlineExceeded)
			return
		}
		for i := range batch {
			if batch[i].Kind != session.InboxConnection {
				t.Errorf("delivered: %v", describe(t, &batch[i]))
			}
		}
	}
}

func same(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("delivered\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}
