package zksync_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// wantOnceInOrder expects each of the producers' messages in the queue once, and the
// messages of a producer in order.
func wantOnceInOrder(t *testing.T, s *session.Session, path string, producers, each int) {
	t.Helper()
	names, _, err := s.Children(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string][]string)
	for _, name := range names {
		if !strings.HasPrefix(name, "qn-") {
			continue
		}
		data, _, err := s.Get(t.Context(), path+"/"+name)
		if err != nil {
			t.Fatal(err)
		}
		producer, _, _ := strings.Cut(string(data), "-")
		got[producer] = append(got[producer], string(data))
	}
	for p := range producers {
		prefix := fmt.Sprintf("%02d", p)
		if want := numbered(prefix+"-", each); !slices.Equal(got[prefix], want) {
			t.Errorf("of producer %s there are %d messages, want %d in order: %q", prefix, len(got[prefix]), each, got[prefix])
		}
	}
}

// Each message is in the queue once while connections break and sessions end, on both servers.
func TestPutsWithBrokenConnections(t *testing.T) {
	const producers, each, faults = 10, 200, 12
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		path := servers.Path(t)
		m := srv.Connect(t)
		q := zksync.NewQueue(m, path)
		defer q.Close()
		var wg sync.WaitGroup
		var mu sync.Mutex
		n := 0
		for p := range producers {
			wg.Go(func() {
				for _, message := range numbered(fmt.Sprintf("%02d-", p), each) {
					if err := q.Put(t.Context(), []byte(message)); err != nil {
						t.Error(err)
					}
					mu.Lock()
					n++
					mu.Unlock()
				}
			})
		}
		for i := range faults {
			for { // until some more are there
				mu.Lock()
				enough := n >= (i+1)*producers*each/(faults+2)
				mu.Unlock()
				if enough || t.Failed() {
					break
				}
				time.Sleep(time.Millisecond)
			}
			s := live(t, m)
			if i%4 == 3 {
				srv.Expire(t, s.ID())
				<-s.Done()
			} else {
				srv.Disconnect(t, s.ID())
			}
		}
		wg.Wait()
		wantOnceInOrder(t, live(t, m), path, producers, each)
	})
}

// Each message is in the queue once while the servers of an ensemble are killed one after the other, the leader
// included.
func TestPutsWhileServersAreKilled(t *testing.T) {
	bounds.Long(t)
	t.Parallel()
	const producers, each = 8, 150
	e := zksynctest.RealZooKeeper(t, 3)
	var ms []*session.Manager
	var qs []*zksync.Queue
	for range 2 {
		m := e.Connect(t)
		q := zksync.NewQueue(m, "/queues/q")
		defer q.Close()
		ms, qs = append(ms, m), append(qs, q)
	}
	var wg sync.WaitGroup
	progress := make(chan struct{}, producers*each)
	for p := range producers {
		wg.Go(func() {
			for _, message := range numbered(fmt.Sprintf("%02d-", p), each) {
				if err := qs[p%2].Put(t.Context(), []byte(message)); err != nil {
					t.Error(err)
				}
				progress <- struct{}{}
			}
		})
	}
	for range 3 {
		for range producers * each / 4 {
			<-progress
		}
		i := e.Leader()
		e.Kill(i)
		for range producers * each / 20 {
			<-progress
		}
		e.Start(i)
		e.WaitReady()
	}
	wg.Wait()
	wantOnceInOrder(t, live(t, ms[0]), "/queues/q", producers, each)
}
