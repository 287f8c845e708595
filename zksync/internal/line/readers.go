package line

import "context"

// The Readers of an RWMutex: the holds are in a pool, and readers that wait are in
// groups.
type Readers struct {
	Pool
	open *readGroup // which new readers join; guarded by the pool's mutex
}

// NewReaders returns the readers of one value in a line.
func NewReaders(l *Line) *Readers { return &Readers{Pool: Pool{line: l}} }

// Acquire waits for a hold, and returns the grant on which it rests.
func (r *Readers) Acquire(ctx context.Context) (*Grant, error) {
	r.mu.Lock()
	g := r.open
	if !g.admits() {
		g = newReadGroup(r)
		r.open = g
		// In a goroutine of its own: the first reader may give up while other readers of the group
		// still wait.
		go g.run()
	} else if g.grant != nil {
		g.grant.left++
		r.mu.Unlock()
		return g.grant, nil
	}
	g.waiting++
	r.mu.Unlock()
	return g.wait(ctx)
}

// TryAcquire is Acquire without waiting. It returns nil if a writer is in line.
func (r *Readers) TryAcquire(ctx context.Context) (*Grant, error) {
	r.mu.Lock()
	g := r.open
	switch {
	case g.admits() && g.grant != nil:
		g.grant.left++
		r.mu.Unlock()
		return g.grant, nil
	case r.check() != nil:
		// A lost hold was not released yet. RLock would wait for that, so the lock is not free.
		r.mu.Unlock()
		return nil, r.line.closed()
	}
	r.mu.Unlock()
	// A group that waits is of no use here, even if it has only just joined the line: its
	// outcome is not known yet.
	c, err := r.line.try(ctx)
	if c == nil {
		return nil, err
	}
	if err := r.admit(ctx, c.grant); err != nil {
		if err == errTainted {
			err = nil
		}
		return nil, err
	}
	return c.grant, nil
}

// admit adds a grant with one hold, which other readers may join. If it fails, it
// withdraws the grant.
func (r *Readers) admit(ctx context.Context, g *Grant) error {
	group := &readGroup{r: r, waiting: 1}
	return group.begin(ctx, g)
}

// forget makes the next reader start another group; r.mu is held.
func (r *Readers) forget(g *readGroup) {
	if r.open == g {
		r.open = nil
	}
}
