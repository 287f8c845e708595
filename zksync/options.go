package zksync

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/go-zksync/toolkit/session"
)

// An Option is an option of some primitive. Each constructor takes an option type of
// its own, so that an option that the primitive does not have does not compile. An
// option of several primitives has a type that satisfies all of their option types:
// IDOption, LayoutOption, MaxWaitOption or PrefetchOption.
//
// Constructors return no error: the first call reports an option with an invalid
// value, with an error that wraps ErrInvalidOption.
type Option interface {
	apply(c *config) error
}

// The options that a primitive takes.
type (
	// A MutexOption is an option of NewMutex: WithID, WithLayout, WithLinger or WithMaxWait.
	MutexOption interface {
		Option
		forMutex()
	}

	// An RWMutexOption is an option of NewRWMutex: WithID, WithLayout or WithMaxWait.
	RWMutexOption interface {
		Option
		forRWMutex()
	}

	// A SemaphoreOption is an option of NewSemaphore: WithID, WithLayout, WithMaxWait or WithSizeFrom.
	SemaphoreOption interface {
		Option
		forSemaphore()
	}

	// An ElectionOption is an option of NewElection: WithID, WithLayout, WithMaxWait or WithStopTimeout.
	ElectionOption interface {
		Option
		forElection()
	}

	// A BarrierOption is an option of NewBarrier: WithMaxWait.
	BarrierOption interface {
		Option
		forBarrier()
	}

	// A DoubleBarrierOption is an option of NewDoubleBarrier: WithID or WithMaxWait.
	DoubleBarrierOption interface {
		Option
		forDoubleBarrier()
	}

	// A GroupOption is an option of NewGroup: WithIDWait.
	GroupOption interface {
		Option
		forGroup()
	}

	// A QueueOption is an option of NewQueue: WithCapacity, WithLayout, WithMaxWait or WithPrefetch.
	QueueOption interface {
		Option
		forQueue()
	}

	// A PriorityQueueOption is an option of NewPriorityQueue: WithMaxWait or WithPrefetch.
	PriorityQueueOption interface {
		Option
		forPriorityQueue()
	}

	// A DelayQueueOption is an option of NewDelayQueue: WithMaxWait or WithPrefetch.
	DelayQueueOption interface {
		Option
		forDelayQueue()
	}
)

// The options that several primitives take.
type (
	// An IDOption is a MutexOption, RWMutexOption, SemaphoreOption, ElectionOption and DoubleBarrierOption.
	IDOption interface {
		MutexOption
		RWMutexOption
		SemaphoreOption
		ElectionOption
		DoubleBarrierOption
	}

	// A LayoutOption is a MutexOption, RWMutexOption, SemaphoreOption, ElectionOption and QueueOption.
	LayoutOption interface {
		MutexOption
		RWMutexOption
		SemaphoreOption
		ElectionOption
		QueueOption
	}

	// A PrefetchOption is a QueueOption, PriorityQueueOption and DelayQueueOption.
	PrefetchOption interface {
		QueueOption
		PriorityQueueOption
		DelayQueueOption
	}

	// A MaxWaitOption is an option of all primitives but Group.
	MaxWaitOption interface {
		IDOption
		BarrierOption
		PrefetchOption
	}
)

// option implements every option. The result type of its With function decides which
// primitives take it.
type option func(*config) error

func (o option) apply(c *config) error { return o(c) }

func (option) forMutex()         {}
func (option) forRWMutex()       {}
func (option) forSemaphore()     {}
func (option) forElection()      {}
func (option) forBarrier()       {}
func (option) forDoubleBarrier() {}
func (option) forGroup()         {}
func (option) forQueue()         {}
func (option) forPriorityQueue() {}
func (option) forDelayQueue()    {}

type config struct {
	maxWait  time.Duration
	linger   time.Duration
	id       string
	stopping time.Duration
	idWait   bool
	sizeFrom string
	capacity int
	prefetch int
	layout   Layout
}

// newConfig applies the options of a primitive.
func newConfig[O Option](primitive string, opts []O) (config, error) {
	c := config{prefetch: defaultPrefetch}
	for i, opt := range opts {
		if any(opt) == nil {
			return c, fmt.Errorf("%w: option %d is nil", ErrInvalidOption, i+1)
		}
		if err := opt.apply(&c); err != nil {
			return c, err
		}
	}
	return c, c.checkLayout(primitive)
}

// bound applies WithMaxWait to the ctx of a wait.
func (c config) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.maxWait == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, c.maxWait, ErrMaxWait)
}

// WithMaxWait bounds how long an acquisition waits, in addition to its ctx. After d
// it fails with ErrMaxWait, which is also context.DeadlineExceeded. It does not bound
// the time of a hold.
//
// It bounds a Put into a queue until the message is sent: while it waits for room
// or for a connection.
func WithMaxWait(d time.Duration) MaxWaitOption {
	return option(func(c *config) error {
		if d <= 0 {
			return fmt.Errorf("%w: WithMaxWait: %v is not positive", ErrInvalidOption, d)
		}
		c.maxWait = d
		return nil
	})
}

// WithLinger lets a Mutex keep its znode for up to d after Unlock while no other
// contender is in line, so that the next Lock costs no request. The first contender that
// joins ends the linger at once, but a TryLock of another value may return false because
// of it. WithLinger is useful where one process locks the same path again and again. The
// default is 0: off.
func WithLinger(d time.Duration) MutexOption {
	return option(func(c *config) error {
		if d < 0 {
			return fmt.Errorf("%w: WithLinger: %v is negative", ErrInvalidOption, d)
		}
		c.linger = d
		return nil
	})
}

// WithID names the contenders of a Mutex, RWMutex, Semaphore or Election. The id is
// the data of a contender's znode, and others see it as Contender.ID, in the contenders
// of kazoo and in the participants of Curator. It need not be unique. The default is
// the host name and the process id, as "host:4711".
//
// It also names a participant of a DoubleBarrier, whose znode is "member-" and the
// id, and which must be the only one of that name. The default is a GUID.
func WithID(id string) IDOption {
	return option(func(c *config) error {
		if id == "" {
			return fmt.Errorf(`%w: WithID: the id is empty, want one as "node-1"`, ErrInvalidOption)
		}
		c.id = id
		return nil
	})
}

// identity is the data of a contender's znode.
func (c config) identity() []byte {
	if c.id != "" {
		return []byte(c.id)
	}
	return []byte(defaultID())
}

// defaultID is the identity of a contender without WithID.
var defaultID = sync.OnceValue(func() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s:%d", host, os.Getpid())
})

// WithStopTimeout bounds how long Election.Run waits for the work to return
// once its context has ended. By default it waits for as long as that takes, so
// that no other candidate leads before. After d, Run resigns and returns ErrStillRunning
// while the work goes on on its own: from then on another may lead beside it, so
// this is for work that checks its fencing token wherever it writes.
func WithStopTimeout(d time.Duration) ElectionOption {
	return option(func(c *config) error {
		if d <= 0 {
			return fmt.Errorf("%w: WithStopTimeout: %v is not positive", ErrInvalidOption, d)
		}
		c.stopping = d
		return nil
	})
}

// WithIDWait makes Group.Join wait, until its ctx ends, for an id of another
// member to become free. By default such an id is an error at once.
func WithIDWait() GroupOption {
	return option(func(c *config) error {
		c.idWait = true
		return nil
	})
}

// WithSizeFrom lets operators change the number of units of a Semaphore while it is
// in use: the znode at path has the number, in decimal digits. While that znode does
// not exist or has no number, which is logged, the n of NewSemaphore counts. With 0
// no caller gets a unit until the number is changed. A smaller number takes no unit
// from holders: no other caller gets a unit until enough units are released. A
// request for more than the new number fails with ErrTooMany when its turn has come.
func WithSizeFrom(path string) SemaphoreOption {
	return option(func(c *config) error {
		if err := session.CheckPath(path); err != nil {
			return fmt.Errorf("%w: WithSizeFrom: %w", ErrInvalidOption, err)
		}
		c.sizeFrom = path
		return nil
	})
}

// WithCapacity makes Put wait, with its ctx, while n messages or more are in the
// Queue, those included that consumers have and did not acknowledge yet. Of a PutAll
// as many go as there is room for, and the rest waits.
//
// Producers with this option never exceed n; producers without it, and producers in
// other languages, ignore n. A producer that finds the queue full lists it, and does
// so again when something has changed: use it for thousands of messages rather than
// for millions.
func WithCapacity(n int) QueueOption {
	return option(func(c *config) error {
		if n < 1 {
			return fmt.Errorf("%w: WithCapacity: %d is not positive", ErrInvalidOption, n)
		}
		c.capacity = n
		return nil
	})
}
