package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-zksync/toolkit/zksync"
)

// receive works on messages until ctx ends. Received messages are removed from the
// queue.
func receive(ctx context.Context, q *zksync.Queue, work func(msg []byte)) error {
	defer context.AfterFunc(ctx, func() { q.Close() })()
	for msg := range q.Chan() {
		work(msg)
	}
	return q.Err()
}

// A worker does orders, and says what it does.
type worker struct {
	id    string
	takes time.Duration
	fails int // once at each order whose number this divides
	out   io.Writer
	tried map[int]bool // those
}

// The events of an order that a worker reports.
const (
	received     = "received"     // it has the order, and it may be the first or not
	acknowledged = "acknowledged" // it has done it, and no consumer gets it again
	returned     = "returned"     // it has not done it, and the next consumer that asks gets it
	lost         = "lost"         // it lost its session, and with it the order
)

func (w *worker) say(what string, msg []byte) { fmt.Fprintf(w.out, "%s %s %s\n", w.id, what, msg) }

func (w *worker) receive(msg []byte) {
	w.say(received, msg)
	time.Sleep(w.takes)
}

// consume does orders until ctx ends. Orders that it does not acknowledge, for
// example because it is killed, go to other consumers.
func (w *worker) consume(ctx context.Context, q *zksync.Queue) error {
	defer context.AfterFunc(ctx, func() { q.Close() })()
	for msg := range q.Messages() {
		w.say(received, msg.Data)
		// We want to know what came of it even if we are to stop. Close sees to it that
		// this does not take long.
		settled := context.WithoutCancel(ctx)
		what, err := acknowledged, w.do(ctx, msg.Data)
		if err == nil {
			err = msg.Ack(settled)
		} else {
			what, err = returned, msg.Nack(settled)
		}
		switch {
		case err == nil:
			w.say(what, msg.Data)
		case errors.Is(err, zksync.ErrQueueClosed):
			w.say(returned, msg.Data) // by Close, since we are to stop
		case errors.Is(err, zksync.ErrLost):
			w.say(lost, msg.Data)
		default:
			return err
		}
	}
	return q.Err()
}

var errTryAgain = errors.New("it did not work out")

// do is the work.
func (w *worker) do(ctx context.Context, msg []byte) error {
	select {
	case <-time.After(w.takes):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if n, ok := number(msg); ok && w.fails > 0 && n%w.fails == 0 && !w.tried[n] {
		if w.tried == nil {
			w.tried = make(map[int]bool)
		}
		w.tried[n] = true
		return errTryAgain
	}
	return nil
}

// number is the one of an order.
func number(msg []byte) (n int, ok bool) {
	_, err := fmt.Sscanf(string(msg), "order %d", &n)
	return n, err == nil
}
