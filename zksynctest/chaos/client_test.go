//go:build unix

package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
)

// The environment variables of a client process.
const (
	clientEnv  = "ZKSYNC_CHAOS_CLIENT" // its name; empty in the test itself
	serversEnv = "ZKSYNC_CHAOS_SERVERS"
	notesEnv   = "ZKSYNC_CHAOS_NOTES"
)

const (
	root           = "/chaos"
	sessionTimeout = 4 * time.Second
	permits        = 3
	backlog        = 500 // maximum number of queued messages
	open           = 1   // the Units of an unput or unacked that may have taken effect
	// stutter is an interval between two reads of the clock that occurs only if the process was
	// stopped.
	stutter = 100 * time.Millisecond
)

// client is one process with two sessions.
type client struct {
	name  string
	notes *notebook

	mu    sync.Mutex
	holds int
}

// runClient works until it receives a byte, and returns the result as an exit status.
func runClient() int {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		if n, _ := os.Stdin.Read(make([]byte, 1)); n == 0 {
			os.Exit(1) // the test process has ended
		}
		stop()
	}()
	notes, err := openNotebook(os.Getenv(notesEnv))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	c := &client{name: os.Getenv(clientEnv), notes: notes}
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() {
			if err := c.session(ctx, i); err != nil && ctx.Err() == nil {
				c.notes.write(note{Kind: failed, What: "session", Text: err.Error()})
			}
		})
	}
	wg.Wait()
	return 0
}

func (c *client) session(ctx context.Context, i int) error {
	var m *session.Manager
	for m == nil {
		var err error
		if m, err = session.Connect(ctx, os.Getenv(serversEnv), session.WithTimeout(sessionTimeout)); err != nil {
			if ctx.Err() != nil {
				return err
			}
			c.notes.write(note{Kind: failed, What: "connect", Text: err.Error()})
		}
	}
	defer m.Close()
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), uint64(i)))
	mu := zksync.NewMutex(m, root+"/lock")
	lingering := zksync.NewMutex(m, root+"/lock", zksync.WithLinger(50*time.Millisecond))
	rw := zksync.NewRWMutex(m, root+"/rwlock")
	sem := zksync.NewSemaphore(m, root+"/semaphore", permits)
	election := zksync.NewElection(m, root+"/election", zksync.WithID(c.name))
	work := []func(){
		func() { c.holding(ctx, "lock", 1, mu.LockContext, mu.Unlock) },
		func() { c.holding(ctx, "lock", 1, mu.LockContext, mu.Unlock) },
		func() { c.holding(ctx, "lock", 1, lingering.LockContext, lingering.Unlock) },
		func() { c.holding(ctx, "rwlock", capacity["rwlock"], rw.LockContext, rw.Unlock) },
		func() { c.holding(ctx, "rwlock", 1, rw.RLockContext, rw.RUnlock) },
		func() {
			n := 1 + r.IntN(2)
			c.holding(ctx, "semaphore", n,
				func(ctx context.Context) (context.Context, error) { return sem.AcquireContext(ctx, n) },
				func() error { return sem.Release(n) })
		},
		func() { c.holding(ctx, "election", 1, election.Campaign, election.Resign) },
	}
	var wg sync.WaitGroup
	for _, fn := range work {
		wg.Go(func() {
			for ctx.Err() == nil {
				fn()
			}
		})
	}
	wg.Go(func() { c.produce(ctx, m, i) })
	wg.Go(func() { c.consume(ctx, m, i) })
	wg.Wait()
	return m.Close()
}

// holding acquires something, holds it for a moment, and releases it.
func (c *client) holding(ctx context.Context, what string, units int, take func(context.Context) (context.Context, error), release func() error) {
	wait, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	hold, err := take(wait)
	if err != nil {
		if wait.Err() == nil {
			c.notes.write(note{Kind: failed, What: what, Text: err.Error()})
			pause(ctx, 50*time.Millisecond)
		}
		return
	}
	c.mu.Lock()
	c.holds++
	id := c.holds
	c.mu.Unlock()
	token, _ := zksync.Token(hold)
	n := note{What: what, Hold: id, Units: units, Token: token}
	last := c.believe(hold, n)
	n.Kind = released
	if err := release(); err != nil {
		n.Text = err.Error()
		if !errors.Is(err, zksync.ErrLost) {
			n.Kind = failed
		}
	}
	c.notes.write(n)
	if last == 0 {
		return // the hold had ended before its first note
	}
	pause(ctx, time.Duration(rand.IntN(20))*time.Millisecond)
}

// believe notes that the client holds something, for as long as the context of the hold lives, and
// returns the time of the last note. A process that notices that it was stopped checks the context
// again before its next note, as the documentation requires.
func (c *client) believe(hold context.Context, n note) int64 {
	length := time.Duration(rand.IntN(60)) * time.Millisecond
	began := time.Now()
	var first, last, told int64
	for before := began; ; {
		pause(hold, time.Millisecond)
		now := time.Now()
		if now.Sub(before) > stutter {
			pause(hold, 20*time.Millisecond)
			before = time.Now()
			continue
		}
		before = now
		if hold.Err() != nil {
			break
		}
		last = now.UnixNano()
		switch {
		case first == 0:
			first, told = last, last
			n.At, n.Kind = last, held
			c.notes.write(n)
		case last-told > int64(20*time.Millisecond):
			told = last
			n.At, n.Kind = last, still
			c.notes.write(n)
		}
		if now.Sub(began) >= length {
			break
		}
	}
	if last != 0 {
		n.At, n.Kind = last, ended
		c.notes.write(n)
	}
	return last
}

// pause waits for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// produce puts messages with unique names, some alone and some in batches.
func (c *client) produce(ctx context.Context, m *session.Manager, i int) {
	q := zksync.NewQueue(m, root+"/queue", zksync.WithCapacity(backlog))
	defer q.Close()
	var wg sync.WaitGroup
	for g := range 3 {
		wg.Go(func() {
			for k := 0; ctx.Err() == nil; k++ {
				id := fmt.Sprintf("%s/%d/%d/%d", c.name, i, g, k)
				c.notes.write(note{Kind: trying, What: "queue", Text: id})
				wait, cancel := context.WithTimeout(ctx, 20*time.Second)
				err := q.Put(wait, []byte(id))
				if err != nil {
					n := note{Kind: unput, What: "queue", Text: id + " " + err.Error()}
					if errors.Is(err, zksync.ErrOutcomeUnknown) || wait.Err() != nil {
						n.Units = open
					}
					c.notes.write(n)
				} else {
					c.notes.write(note{Kind: put, What: "queue", Text: id})
				}
				cancel()
				pause(ctx, time.Duration(rand.IntN(40))*time.Millisecond)
			}
		})
	}
	wg.Wait()
}

// consume receives messages, works on them for a moment, and acknowledges most of them.
func (c *client) consume(ctx context.Context, m *session.Manager, i int) {
	for ctx.Err() == nil {
		q := zksync.NewQueue(m, root+"/queue", zksync.WithPrefetch(8))
		for n := 0; n < 500; n++ { // then continue with another Queue value
			select {
			case msg, ok := <-q.Messages():
				if !ok {
					if ctx.Err() == nil {
						c.notes.write(note{Kind: failed, What: "queue", Text: fmt.Sprint(q.Err())})
					}
					break
				}
				c.message(ctx, msg, i)
				continue
			case <-ctx.Done():
			}
			break
		}
		if err := q.Close(); err != nil && ctx.Err() == nil {
			c.notes.write(note{Kind: failed, What: "queue", Text: err.Error()})
		}
	}
}

func (c *client) message(ctx context.Context, msg *zksync.Message, i int) {
	id := string(msg.Data)
	c.notes.write(note{Kind: got, What: "queue", Hold: i, Text: id})
	pause(ctx, time.Duration(rand.IntN(3))*time.Millisecond)
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	if rand.IntN(20) == 0 {
		if err := msg.Nack(end); err != nil && !errors.Is(err, zksync.ErrLost) {
			c.notes.write(note{Kind: failed, What: "queue", Hold: i, Text: id + " " + err.Error()})
		}
		c.notes.write(note{Kind: unacked, What: "queue", Hold: i, Text: id + " given back"})
		return
	}
	if err := msg.Ack(end); err != nil {
		n := note{Kind: unacked, What: "queue", Hold: i, Text: id + " " + err.Error()}
		if errors.Is(err, zksync.ErrOutcomeUnknown) || end.Err() != nil {
			n.Units = open
		}
		c.notes.write(n)
		return
	}
	c.notes.write(note{Kind: acked, What: "queue", Hold: i, Text: id})
}
