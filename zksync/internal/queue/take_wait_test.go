package queue

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// takes starts n Takes, each with a ctx of its own, and returns the functions that end these, and the results.
func (h harness) takes(c *Consumer, n int) (ends []context.CancelFunc, results chan error) {
	results = make(chan error, n)
	for range n {
		ctx, cancel := context.WithCancel(h.Context())
		h.Cleanup(cancel)
		ends = append(ends, cancel)
		go func() {
			_, _, err := c.Take(ctx, true)
			results <- err
		}()
		synctest.Wait() // they wait in this order
	}
	return ends, results
}

// A message wakes one waiting Take of a value and the next one, and not all of them: its cost, as the number of allocations tells,
// does not grow with their number.
func TestAMessageWakesFewTakes(t *testing.T) {
	const messages = 20
	cost := func(takes int) (mallocs uint64) {
		inBubble(t, func(h harness) {
			h.put(0, 0)
			_, results := h.takes(h.consumer(h.srv.Connect(h), 1, InOrder), takes)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for i := range messages {
				h.put(i, i+1)
				h.must(<-results)
				synctest.Wait()
			}
			runtime.ReadMemStats(&after)
			mallocs = (after.Mallocs - before.Mallocs) / messages
		})
		return mallocs
	}
	few, many := cost(messages+1), cost(messages+500)
	if many > 2*few {
		t.Errorf("%d allocations for a message beside many waiting Takes, want at most %d", many, 2*few)
	}
}

// No message waits beside a waiting Take after another Take was cancelled, whenever that happens.
func TestTakesThatAreCancelledPassMessagesOn(t *testing.T) {
	inBubble(t, func(h harness) {
		h.put(0, 0)
		c := h.consumer(h.srv.Connect(h), 1, InOrder)
		const takes = 60
		ends, results := h.takes(c, takes)
		for i := 0; i < takes-2; i += 2 {
			// A message wakes the Take that has waited longest.
			if i%4 == 0 {
				ends[i]()
				h.put(i, i+1)
			} else {
				go h.srv.Create(testQueue+"/"+itemName(1000+i), nil)
				for range i % 7 {
					runtime.Gosched()
				}
				ends[i]()
			}
			time.Sleep(time.Second) // of the bubble: a Take may pause after the failure of the one before
			names, _ := h.srv.Children(testQueue)
			if left := ItemsOf(names, parseItem); len(left) > 0 {
				h.Fatalf("%v is left beside %d waiting Takes", left, takes-i-2)
			}
		}
		for len(results) > 0 {
			if err := <-results; err != nil && !errors.Is(err, context.Canceled) {
				h.Errorf("Take: %v", err)
			}
		}
	})
}
