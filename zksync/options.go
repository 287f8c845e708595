package zksync

import (
	"fmt"
	"time"

	"github.com/go-zksync/toolkit/session"
)

// checked returns an option that calls set, or fails if valid is false. want is the
// text of the error: the option, the value, and the valid values.
func checked(valid bool, set func(c *config), want string, value ...any) option {
	return func(c *config) error {
		if !valid {
			return fmt.Errorf("%w: "+want, append([]any{ErrInvalidOption}, value...)...)
		}
		set(c)
		return nil
	}
}

// WithMaxWait bounds how long an acquisition waits, in addition to its ctx. After d
// it fails with ErrMaxWait, which is also context.DeadlineExceeded. It does not bound
// the time of a hold. It bounds a Put into a queue until the message is sent, and bounds neither Take
// nor MoveTo. d must be positive: without the option there is no bound.
func WithMaxWait(d time.Duration) MaxWaitOption {
	return maxWaitOption{idOption: idOption{lineOption{checked(d > 0, func(c *config) { c.maxWait = d }, "WithMaxWait: %v, want more than 0", d)}}}
}

// WithLinger lets a Mutex keep its znode for up to d after Unlock while no other
// contender is in line, so that the next Lock costs no request. The first contender that
// joins ends the linger at once, but a TryLock of another value may return false because
// of it. If the servers refuse to delete the znode at the end of the linger, the refusal is logged and
// no call returns it. The znode then keeps others waiting, this value too, as after such an Unlock. The
// default is 0: off.
func WithLinger(d time.Duration) MutexOption {
	return mutexOption{checked(d >= 0, func(c *config) { c.linger = d }, "WithLinger: %v, want 0 or more", d)}
}

// WithID names the contenders of a Mutex, RWMutex, Semaphore or Election. The id is
// the data of a contender's znode, and others see it as Contender.ID, in the contenders
// of kazoo and in the participants of Curator. It need not be unique. The default is
// the host name and the process id, as "host:4711". Calls fail with session.ErrTooLarge if the
// id is too long for a request, see session.WithMaxRequest: Lock and Acquire at once, also if only
// the request of a later hand-over or Downgrade would be too large.
//
// It also names a participant of a DoubleBarrier, whose znode is "member-" and the
// id, and which must be the only one of that name. The default is a GUID.
func WithID(id string) IDOption {
	return idOption{lineOption{checked(id != "", func(c *config) { c.id = id }, `WithID: the id is empty, want one as "node-1"`)}}
}

// WithStopTimeout bounds how long Election.Run waits for the work to return once its
// context has ended. By default Run waits without a bound, so that no other candidate
// leads before. After d, Run resigns and returns ErrStillRunning while the work goes on:
// use it for work that checks its fencing token wherever it writes. d must be positive. The work then runs in a
// goroutine of its own, so that the caller of Run cannot recover its panic.
func WithStopTimeout(d time.Duration) ElectionOption {
	return electionOption{checked(d > 0, func(c *config) { c.stopping = d }, "WithStopTimeout: %v, want more than 0", d)}
}

// WithIDWait makes Group.Join wait, until its ctx ends, for an id of another
// member to become free. By default such an id is an error at once.
func WithIDWait() GroupOption {
	return groupOption{func(c *config) error { c.idWait = true; return nil }}
}

// WithSizeFrom lets operators change the number of units of a Semaphore while it is
// in use: the znode at path has the number, in decimal digits. While that znode does
// not exist or has no number, which is logged, the n of NewSemaphore counts. With 0
// no caller gets a unit until the number is changed. A smaller number takes no unit
// from holders. A request for more than the new number fails with ErrTooMany when its
// turn has come. Change the number by a write to the znode: a request that is under way
// while the znode is created, or is deleted and created again, may still go by the number
// before.
func WithSizeFrom(path string) SemaphoreOption {
	err := session.CheckPath(path)
	return semaphoreOption{checked(err == nil, func(c *config) { c.sizeFrom = path }, "WithSizeFrom: %w", err)}
}

// WithCapacity makes Put wait, with its ctx, while n messages or more are in the
// Queue, messages included that consumers have and did not acknowledge yet. Messages that
// Retry has put off do not count. A PutAll puts as many messages as there is room for, and
// waits with the rest.
//
// Producers with this option never exceed n among themselves. Other producers ignore n: beside
// them, a producer with this option may put messages into a full queue until it counts again,
// which it does after the first request that ends more than 100 ms after its last count. The same holds
// after another client has deleted zksync-limit, whose version shows a producer whether others have put
// messages since its count. A producer that finds the queue full lists it after each change: use
// the option for thousands of messages rather than for millions.
func WithCapacity(n int) QueueOption {
	return queueOption{checked(n > 0, func(c *config) { c.capacity = n }, "WithCapacity: %d, want at least 1", n)}
}

const (
	// maxPrefetch is the greatest number for WithPrefetch.
	maxPrefetch     = 100_000
	defaultPrefetch = 128
)

// WithPrefetch limits how many messages the value of a queue has claimed and not
// settled: messages that wait for the receiver, and messages that were received and
// were neither acknowledged nor given back. n is between 1 and 100,000; the default is
// 128.
//
// A program that keeps n messages without Ack and Nack receives nothing more: so at most n
// goroutines are at work on messages of one session. After the loss of a session, its
// messages do not count any more, since other consumers may have them. A message of Chan
// is settled when it has been removed, right after the receipt. Take claims nothing.
//
// The names of the messages must fit into half of a request, each by itself: that is room for 35,000
// with the default session.WithMaxRequest, and in a DelayQueue for 20,000 of all consumers together. A
// value that has no room for n logs what it waits for. Give all consumers of a queue the same
// WithMaxRequest: one with smaller requests may have to wait until others settle their messages.
//
// A value claims fewer than n at first, and where other consumers wait for messages no
// more than its share. No other consumer gets a claimed message, so choose a small n
// where the work on a message takes long.
func WithPrefetch(n int) PrefetchOption {
	return anyQueueOption{option: checked(n > 0 && n <= maxPrefetch, func(c *config) { c.prefetch = n }, "WithPrefetch: %d, want 1 to %d", n, maxPrefetch)}
}

// WithLayout makes the znodes of a Mutex, RWMutex, Election, Semaphore or Queue look
// like the znodes of other clients, to share a path with these clients: see Layout
// for the layouts, and docs/migrating.md for the clients that each layout is for. All
// users of an Election, a Semaphore or a Queue at a path must have the same layout.
func WithLayout(l Layout) LayoutOption {
	return layoutOption{lineOption{checked(l >= LayoutCurator && l <= LayoutEphemeral, func(c *config) { c.layout = l }, "WithLayout: there is no %v", l)}}
}
