package zksync_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// The session of consumers ends that hold 80,000 messages which they have not settled. The
// ensemble serves on, all messages are delivered again, and the transaction that ends the
// session names few znodes.
func TestSessionWith80000UnsettledMessages(t *testing.T) {
	bounds.Long(t)
	t.Parallel()
	const messages = 80_000 / slowdown
	e := zksynctest.RealZooKeeper(t, 3)
	producer := zksync.NewQueue(e.Connect(t), queuePath)
	defer producer.Close()
	batch := make([][]byte, 1000)
	for i := range messages / len(batch) {
		for j := range batch {
			batch[j] = fmt.Append(nil, i*len(batch)+j)
		}
		must(t, producer.PutAll(t.Context(), batch...))
	}

	link := zksynctest.NewLink(new(net.Dialer).DialContext)
	defer link.Close()
	m := e.Connect(t, session.WithTimeout(8*time.Second), session.WithDialer(link.Dial))
	id := live(t, m).ID()
	// One value has room for the names of 35,000 messages: see WithPrefetch.
	var values [3]*zksync.Queue
	for i := range values {
		values[i] = zksync.NewQueue(m, queuePath, zksync.WithPrefetch(35_000))
	}
	for i := range messages {
		select {
		case <-values[0].Messages():
		case <-values[1].Messages():
		case <-values[2].Messages():
		case <-time.After(time.Minute):
			t.Fatalf("no message after %d, Err: %v, %v, %v", i, values[0].Err(), values[1].Err(), values[2].Err())
		}
	}
	other := live(t, e.Connect(t))
	var ledgers []string
	size := 0 // of the transaction: the server lists the session's ephemerals in it
	for _, dir := range []string{"zksync-claims", "zksync-idle"} {
		names, _, err := other.Children(t.Context(), queuePath+"/"+dir)
		if session.ClassOf(err) == session.ClassNoNode {
			continue
		}
		must(t, err)
		for _, name := range names {
			path := queuePath + "/" + dir + "/" + name
			data, stat, err := other.Get(t.Context(), path)
			must(t, err)
			if stat.EphemeralOwner == id {
				size += len(path) + 4
				if strings.HasPrefix(name, "ledger-") {
					ledgers = append(ledgers, path)
				}
			}
			t.Logf("%s has %d bytes", name, len(data))
		}
	}
	if size == 0 || size > 100_000 {
		t.Errorf("the transaction that ends the session has %d bytes of paths, want 1 to 100,000", size)
	}

	link.Cut()
	for _, ledger := range ledgers {
		there, _, w, err := other.WatchExists(t.Context(), ledger)
		must(t, err)
		if there {
			<-w.Events()
		}
		w.Stop()
	}
	// Each server restarts with this transaction in its log.
	for i := 1; i <= 3; i++ {
		e.Kill(i)
		e.Start(i)
		e.WaitReady()
	}
	names, _, err := live(t, e.Connect(t)).Children(t.Context(), queuePath)
	must(t, err)
	left := 0
	for _, name := range names {
		if strings.HasPrefix(name, "qn-") {
			left++
		}
	}
	if left != messages {
		t.Errorf("%d messages are left, want %d", left, messages)
	}
	link.Heal()
	for _, q := range values {
		q.Close()
	}
	next := zksync.NewQueue(e.Connect(t), queuePath)
	defer next.Close()
	for i := range messages {
		select {
		case <-next.Chan():
		case <-time.After(time.Minute):
			t.Fatalf("no message after %d of the second delivery, Err: %v", i, next.Err())
		}
	}
}
