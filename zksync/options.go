package zksync

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zksync/toolkit/session"
)

// An Option changes a default of a constructor. Constructors return no error: the
// first call reports an invalid option, or an option that the primitive does not
// have, with an error that wraps ErrInvalidOption.
type Option func(*config) error

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
	given    []string // the names of the options
}

// newConfig applies the options of a primitive, which has those named in has.
func newConfig(primitive string, opts []Option, has ...string) (config, error) {
	c := config{prefetch: defaultPrefetch}
	for i, opt := range opts {
		if opt == nil {
			return c, fmt.Errorf("%w: option %d is nil", ErrInvalidOption, i+1)
		}
		if err := opt(&c); err != nil {
			return c, err
		}
	}
	for _, name := range c.given {
		if !slices.Contains(has, name) {
			return c, fmt.Errorf("%w: %s is not for %s, which has %s", ErrInvalidOption, name, primitive, strings.Join(has, ", "))
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
func WithMaxWait(d time.Duration) Option {
	return func(c *config) error {
		if d <= 0 {
			return fmt.Errorf("%w: WithMaxWait: %v is not positive", ErrInvalidOption, d)
		}
		c.given = append(c.given, "WithMaxWait")
		c.maxWait = d
		return nil
	}
}

// WithLinger lets a Mutex keep its znode for up to d after Unlock while nobody
// else is in line, so that locking again costs no request. The first contender
// ends it at once, but a TryLock elsewhere may return false against it. It pays
// where one process locks the same path over and over. The default is 0: off.
func WithLinger(d time.Duration) Option {
	return func(c *config) error {
		if d < 0 {
			return fmt.Errorf("%w: WithLinger: %v is negative", ErrInvalidOption, d)
		}
		c.given = append(c.given, "WithLinger")
		c.linger = d
		return nil
	}
}

// WithID names the contenders of a Mutex, RWMutex, Semaphore or Election. The id is
// the data of a contender's znode, and others see it as Contender.ID, in the contenders
// of kazoo and in the participants of Curator. It need not be unique. The default is
// the host name and the process id, as "host:4711".
//
// It also names a participant of a DoubleBarrier, whose znode is "member-" and the
// id, and which must be the only one of that name. The default is a GUID.
func WithID(id string) Option {
	return func(c *config) error {
		if id == "" {
			return fmt.Errorf(`%w: WithID: the id is empty, want one as "node-1"`, ErrInvalidOption)
		}
		c.given = append(c.given, "WithID")
		c.id = id
		return nil
	}
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
// that nobody else leads before. After d, Run resigns and returns ErrStillRunning
// while the work goes on on its own: from then on another may lead beside it, so
// this is for work that checks its fencing token wherever it writes.
func WithStopTimeout(d time.Duration) Option {
	return func(c *config) error {
		if d <= 0 {
			return fmt.Errorf("%w: WithStopTimeout: %v is not positive", ErrInvalidOption, d)
		}
		c.given = append(c.given, "WithStopTimeout")
		c.stopping = d
		return nil
	}
}

// WithIDWait makes Group.Join wait, until its ctx ends, for an id that somebody
// else has to become free. By default that is an error at once.
func WithIDWait() Option {
	return func(c *config) error {
		c.given = append(c.given, "WithIDWait")
		c.idWait = true
		return nil
	}
}

// WithSizeFrom lets operators change the number of units of a Semaphore while it is
// in use: the znode at path has the number, in decimal digits. While that znode does
// not exist or has no number, which is logged, the n of NewSemaphore counts. With 0
// no caller gets a unit until the number is changed. A smaller number takes no unit
// from holders: no other caller gets a unit until enough units are released. A
// request for more than the new number fails with ErrTooMany when its turn has come.
func WithSizeFrom(path string) Option {
	return func(c *config) error {
		if err := session.CheckPath(path); err != nil {
			return fmt.Errorf("%w: WithSizeFrom: %w", ErrInvalidOption, err)
		}
		c.given = append(c.given, "WithSizeFrom")
		c.sizeFrom = path
		return nil
	}
}

// WithCapacity makes Put wait, with its ctx, while n messages or more are in the
// Queue, those included that consumers have and did not acknowledge yet. Of a PutAll
// as many go as there is room for, and the rest waits.
//
// Producers with this option never exceed n; producers without it, and producers in
// other languages, ignore n. A producer that finds the queue full lists it, and does
// so again when something has changed: use it for thousands of messages rather than
// for millions.
func WithCapacity(n int) Option {
	return func(c *config) error {
		if n < 1 {
			return fmt.Errorf("%w: WithCapacity: %d is not positive", ErrInvalidOption, n)
		}
		c.given = append(c.given, "WithCapacity")
		c.capacity = n
		return nil
	}
}
