package session_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// exampleObserver opens a Manager with an observer on a server in this process.
func exampleObserver(o session.Observer) (srv *zkserver.Server, m *session.Manager, stop func()) {
	srv = serve(zkserver.Config{})
	m, err := session.Connect(context.Background(), "127.0.0.1:2181", session.WithDialer(srv.Dial), session.WithObserver(o))
	if err != nil {
		log.Fatal(err)
	}
	return srv, m, func() {
		m.Close()
		srv.Close()
	}
}

// exampleID returns the id of the Manager's session.
func exampleID(m *session.Manager) int64 {
	s, err := m.Session(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	return s.ID()
}

// A program counts the sessions that it has lost.
func ExampleStateChange() {
	lost := make(chan int64, 1)
	srv, m, stop := exampleObserver(session.Observer{StateChanged: func(c session.StateChange) {
		if c.To == session.Lost {
			lost <- c.Session
		}
	}})
	defer stop()

	ours := exampleID(m)
	if err := srv.ExpireSession(ours); err != nil {
		log.Fatal(err)
	}
	fmt.Println("our session was lost:", <-lost == ours)
	// Output: our session was lost: true
}

// A program measures the requests that its own calls send.
func ExampleRequestDone() {
	done := make(chan session.RequestDone, 100)
	_, m, stop := exampleObserver(session.Observer{RequestDone: func(r session.RequestDone) {
		if !r.Own {
			done <- r
		}
	}})
	defer stop()

	s, err := m.Session(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	s.Get(context.Background(), "/none")
	r := <-done
	fmt.Println(r.Op, r.Path, r.Class, r.Latency > 0)
	// Output: get /none NoNode true
}

// A program measures how long its calls wait for locks.
func ExampleWaitEnded() {
	ended := make(chan session.WaitEnded, 1)
	_, m, stop := exampleObserver(session.Observer{WaitEnded: func(w session.WaitEnded) { ended <- w }})
	defer stop()
	ctx := context.Background()

	first, second := zksync.NewMutex(m, "/locks/a"), zksync.NewMutex(m, "/locks/a")
	if err := first.Lock(ctx); err != nil {
		log.Fatal(err)
	}
	waiting, giveUp := context.WithCancel(ctx)
	go func() {
		for len(m.Stats().Waits) == 0 {
			time.Sleep(time.Millisecond)
		}
		giveUp()
	}()
	second.Lock(waiting)
	w := <-ended
	fmt.Println(w.Op, w.Path, w.Duration > 0, w.Cancelled)
	// Output: lock /locks/a true true
}

// A program shows the locks that it holds.
func ExampleHoldStarted() {
	started := make(chan session.HoldStarted, 1)
	_, m, stop := exampleObserver(session.Observer{HoldStarted: func(h session.HoldStarted) { started <- h }})
	defer stop()

	if err := zksync.NewMutex(m, "/locks/a").Lock(context.Background()); err != nil {
		log.Fatal(err)
	}
	h := <-started
	fmt.Println(h.Path, h.Session == exampleID(m))
	// Output: /locks/a true
}

// A program raises an alarm when it loses a lock.
func ExampleHoldEnded() {
	ended := make(chan session.HoldEnded, 1)
	srv, m, stop := exampleObserver(session.Observer{HoldEnded: func(h session.HoldEnded) { ended <- h }})
	defer stop()

	if err := zksync.NewMutex(m, "/locks/a").Lock(context.Background()); err != nil {
		log.Fatal(err)
	}
	if err := srv.ExpireSession(exampleID(m)); err != nil {
		log.Fatal(err)
	}
	h := <-ended
	fmt.Println(h.Path, errors.Is(h.Lost, session.ErrLost))
	// Output: /locks/a true
}

// A program measures the bytes that its consumers receive.
func ExampleDelivered() {
	delivered := make(chan session.Delivered, 1)
	_, m, stop := exampleObserver(session.Observer{Delivered: func(d session.Delivered) { delivered <- d }})
	defer stop()

	q := zksync.NewQueue(m, "/jobs")
	defer q.Close()
	if err := q.Put(context.Background(), []byte("resize 4711")); err != nil {
		log.Fatal(err)
	}
	<-q.Chan()
	fmt.Println(<-delivered)
	// Output: {/jobs 11}
}

// A program measures the lengths of its queues.
func ExampleQueueLength() {
	lengths := make(chan session.QueueLength, 100)
	_, m, stop := exampleObserver(session.Observer{QueueLength: func(l session.QueueLength) { lengths <- l }})
	defer stop()

	q := zksync.NewQueue(m, "/jobs")
	defer q.Close()
	if err := q.PutAll(context.Background(), []byte("a"), []byte("b")); err != nil {
		log.Fatal(err)
	}
	if _, err := q.Len(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Println(<-lengths)
	// Output: {/jobs 2}
}
