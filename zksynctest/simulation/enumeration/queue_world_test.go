package enumeration_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-zksync/toolkit/zksync"
)

// payload returns the data of a message: its id, which is filled up to the size of the world.
func (s *stage) payload(id string) []byte {
	return fmt.Appendf(nil, "%-*s", s.of.world.size, id)
}

// idOf returns the id of a message.
func idOf(data []byte) string { return strings.TrimRight(string(data), " ") }

// tryTake takes a message that is left.
func (mb *mailbox) tryTake(q anyQueue) (data []byte, ok bool, err error) {
	ctx, cancel := context.WithTimeout(mb.ctx, 2*timeout)
	defer cancel()
	return q.TryTake(ctx)
}

// beside returns the path of a directory in which the consumers of the queue write beside the messages.
func (s *stage) beside(name string) string {
	if s.of.world.layout == zksync.LayoutKazoo {
		return queuePath + "-" + name // every child of kazoo's queue is a message
	}
	return queuePath + "/" + name
}

// giveUpAlone cancels the calls of a producer after a while if another client is gone or may have
// stopped consuming, until stop is called. A Put that finds no number in the world spent waits for
// consumers.
func (mb *mailbox) giveUpAlone(c *client) (stop func()) {
	if mb.of.world.name != "spent" {
		return func() {}
	}
	ctx, cancel := context.WithCancel(mb.ctx)
	go func() {
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-time.After(4 * timeout):
				// A quota, or a permission that is missing, may have closed the channel of a consumer.
				if mb.harm()&(refuses|forbids) != 0 || slices.ContainsFunc(mb.clients, func(other *client) bool { return other != c && other.gone() }) {
					c.cancel(errors.New("there may be no consumer"))
				}
			}
		}
	}()
	return cancel
}
