package zksync

import (
	"context"
	"time"
)

// The readers of an RWMutex: holders are in a pool, and waiting readers in groups.
type readers struct {
	pool
	line *line
	open *readGroup // that newcomers join; guarded by the pool's mutex
}

// acquire returns the stake on which one more hold rests.
func (r *readers) acquire(ctx context.Context) (*stake, error) {
	r.mu.Lock()
	g := r.open
	if !g.admits() {
		g = newReadGroup(r)
		r.open = g
		go g.run()
	} else if g.stake != nil {
		g.stake.left++
		r.mu.Unlock()
		return g.stake, nil
	}
	g.waiting++
	r.mu.Unlock()
	return g.wait(ctx)
}

// try is acquire without waiting: nil if a writer is in line.
func (r *readers) try(ctx context.Context) (*stake, error) {
	r.mu.Lock()
	g := r.open
	switch {
	case g.admits() && g.stake != nil:
		g.stake.left++
		r.mu.Unlock()
		return g.stake, nil
	case r.check() != nil:
		r.mu.Unlock()
		return nil, nil
	}
	r.mu.Unlock()
	// A waiting group is of no use to a try, even if it has joined the line only just
	// now: its outcome is not known yet.
	p, err := r.line.try(ctx)
	if p == nil {
		return nil, err
	}
	st := p.stake()
	if err := r.admit(st); err != nil {
		st.leave()
		if err == errTainted {
			err = nil
		}
		return nil, err
	}
	return st, nil
}

// admit adds a stake with one hold, which other readers may join.
func (r *readers) admit(st *stake) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.add(st, 1); err != nil {
		return err
	}
	if !r.open.admits() {
		r.open = &readGroup{r: r, stake: st, since: time.Now()}
	}
	return nil
}

// forget makes the next reader start another group; r.mu is held.
func (r *readers) forget(g *readGroup) {
	if r.open == g {
		r.open = nil
	}
}
