package zksync

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/go-zksync/toolkit/session"
)

// An Option is an option of some primitive. Each constructor takes an option type of
// its own, so that an option that the primitive does not have does not compile.
//
// Constructors return no error: the first call reports an option with an invalid
// value, with an error that wraps ErrInvalidOption.
type Option interface{ apply(c *config) error }

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

// An option implements the option types of the primitives that it is for, and no other
// ones, through a type that embeds it.
type option func(*config) error

func (o option) apply(c *config) error { return o(c) }

type (
	mutexOption     struct{ option }
	semaphoreOption struct{ option }
	electionOption  struct{ option }
	groupOption     struct{ option }
	queueOption     struct{ option }
	anyQueueOption  struct {
		option
		queues
	}
	lineOption    struct{ option } // of the primitives whose contenders are in line
	layoutOption  struct{ lineOption }
	idOption      struct{ lineOption }
	maxWaitOption struct {
		idOption
		queues
	}
	queues struct{} // the marks of all queues
)

func (mutexOption) forMutex()         {}
func (semaphoreOption) forSemaphore() {}
func (electionOption) forElection()   {}
func (groupOption) forGroup()         {}
func (queueOption) forQueue()         {}

func (queues) forQueue()         {}
func (queues) forPriorityQueue() {}
func (queues) forDelayQueue()    {}

func (lineOption) forMutex()     {}
func (lineOption) forRWMutex()   {}
func (lineOption) forSemaphore() {}
func (lineOption) forElection()  {}

func (layoutOption) forQueue()     {}
func (idOption) forDoubleBarrier() {}
func (maxWaitOption) forBarrier()  {}

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

// newConfig applies the options of a primitive, and checks its Manager and path.
func newConfig[O Option](primitive string, m *session.Manager, path string, opts []O) (config, error) {
	c := config{prefetch: defaultPrefetch}
	for i, opt := range opts {
		if any(opt) == nil {
			return c, fmt.Errorf("%w: option %d is nil", ErrInvalidOption, i+1)
		}
		if err := opt.apply(&c); err != nil {
			return c, err
		}
	}
	if err := c.checkLayout(primitive); err != nil {
		return c, err
	}
	if m == nil {
		return c, fmt.Errorf("%w: the Manager of the %s is nil, want a result of session.Connect", ErrInvalidOption, primitive)
	}
	return c, session.CheckPath(path)
}

// bound applies WithMaxWait to the ctx of a wait.
func (c config) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.maxWait == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, c.maxWait, ErrMaxWait)
}

// identity is the data of a contender's znode.
func (c config) identity() []byte { return []byte(cmp.Or(c.id, defaultID())) }

// defaultID is the identity of a contender without WithID.
var defaultID = sync.OnceValue(func() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s:%d", host, os.Getpid())
})
