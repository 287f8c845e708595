package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// When the instance that works is cut off from the servers, another instance takes
// over, and only after the first one has stopped. The session timeout is half a
// minute; the test takes milliseconds, because time in the bubble passes when all
// its goroutines wait.
func TestTheOtherTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		started, stopped := make(chan int64, 3), make(chan time.Time, 3)
		job := func(ctx context.Context) error {
			token, _ := zksync.Token(ctx)
			started <- token
			<-ctx.Done()
			stopped <- time.Now()
			return nil
		}
		instance := func() *zksynctest.Link {
			link := srv.NewLink(t)
			go serve(t.Context(), link.Connect(t, session.WithTimeout(30*time.Second)), job)
			return link
		}

		a := instance()
		first := <-started
		instance()
		cut := time.Now()
		a.Cut()
		second := <-started

		if len(stopped) != 1 {
			t.Fatal("two instances worked at the same time")
		}
		if second <= first {
			t.Errorf("token %d after %d", second, first)
		}
		t.Logf("the first stopped after %v, the second began after %v", (<-stopped).Sub(cut), time.Since(cut))
	})
}
