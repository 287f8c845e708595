// Package docs has the Go code of the documents, so that it is compiled. Each
// block of code of migrating.md is in here, word for word.
package docs

import (
	"context"
	"log"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

var (
	work     func(context.Context) error
	workThat func()
	process  func([]byte) error
)

func beforeZK() error {
	conn, _, err := zk.Connect([]string{"zk1:2181", "zk2:2181"}, 10*time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	lock := zk.NewLock(conn, "/locks/orders", zk.WorldACL(zk.PermAll))
	if err := lock.Lock(); err != nil { // waits without a limit
		return err
	}
	defer lock.Unlock()
	workThat() // goes on if the session is lost
	return nil
}

func afterZK(ctx context.Context) error {
	m, err := session.Connect(ctx, "zk1:2181,zk2:2181")
	if err != nil {
		return err
	}
	defer m.Close()
	mu := zksync.NewMutex(m, "/locks/orders")
	return mu.Do(ctx, work) // work's context ends before another process has the lock
}

func curatorLocks(ctx context.Context, m *session.Manager) error {
	mu := zksync.NewMutex(m, "/locks/orders", zksync.WithMaxWait(3*time.Second))
	held, err := mu.LockContext(ctx)
	if err != nil {
		return err // errors.Is(err, zksync.ErrMaxWait) after three seconds
	}
	defer mu.Unlock()
	return work(held)
}

func curatorLeaders(ctx context.Context, m *session.Manager) error {
	e := zksync.NewElection(m, "/leader", zksync.WithID("node-1"))
	return e.Run(ctx, work) // campaigns again after a loss, until work or ctx ends
}

func curatorQueues(ctx context.Context, m *session.Manager) error {
	q := zksync.NewQueue(m, "/orders")
	defer q.Close()
	if err := q.Put(ctx, []byte("order 66")); err != nil {
		return err
	}
	for msg, err := range q.All(ctx) {
		if err != nil {
			return err
		}
		if process(msg.Data) == nil {
			err = msg.Ack(ctx)
		} else {
			err = msg.Retry(ctx, time.Minute) // or MoveTo, when msg.Attempts is too high
		}
		if err != nil {
			log.Print(err) // with ErrLost, the message may come again
		}
	}
	return nil
}

func kazooTold(ctx context.Context, m *session.Manager) error {
	mu := zksync.NewMutex(m, "/locks/orders")
	return mu.Do(ctx, work)
}

func kazooUntold(ctx context.Context, m *session.Manager) error {
	mu := zksync.NewMutex(m, "/locks/orders", zksync.WithLayout(zksync.LayoutKazoo))
	return mu.Do(ctx, work)
}

func afterEtcd(ctx context.Context, m *session.Manager) error {
	mu := zksync.NewMutex(m, "/locks/orders")
	held, err := mu.LockContext(ctx)
	if err != nil {
		return err
	}
	defer mu.Unlock()
	token, _ := zksync.Token(held) // in place of the revision
	return write(held, token)
}

var write func(ctx context.Context, token int64) error

// The code of docs/migrating.md works: the test runs the page's ways to hold as they stand.
func TestMigrated(t *testing.T) {
	srv := zksynctest.Start(t)
	m := srv.Connect(t)
	calls := 0
	work = func(ctx context.Context) error { calls++; return ctx.Err() }
	write = func(_ context.Context, token int64) error {
		if token == 0 {
			t.Error("no token")
		}
		return nil
	}
	for _, run := range []func(context.Context, *session.Manager) error{curatorLocks, curatorLeaders, kazooTold, kazooUntold, afterEtcd} {
		if err := run(t.Context(), m); err != nil {
			t.Error(err)
		}
	}
	if calls != 4 {
		t.Errorf("the work was done %d times", calls)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = afterZK(ctx)
	for _, unused := range []any{beforeZK, curatorQueues} {
		_ = unused // it needs an ensemble and an end of messages, and this test has neither
	}
}
