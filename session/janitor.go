package session

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"
)

// A janitor removes znodes that callers left behind. It repeats each chore until the
// znode is gone, the session is over, or the server has refused the removal for good. A
// missing permission may be given later: it is reported as a refusal, and the janitor goes on.
// It has a goroutine only while there are chores.
type janitor struct {
	m     *shared
	gate  *gate
	id    *identity
	wg    *sync.WaitGroup // the wait group of the Session, for clean
	added chan struct{}   // has one element if a chore was added that clean has not seen

	mu      sync.Mutex
	chores  []*chore // chores that wait for their next attempt
	running bool
	closed  bool
}

const maxChores = 128 // in one attempt

// discard adds a chore for one znode; see Session.Discard.
func (j *janitor) discard(c *chore) <-chan error {
	// No znode has an invalid path, so there is nothing to remove. The requests for a path above
	// the limit, of which the check is the longest, would break one connection after another.
	err := checkPath(c.paths[0], false)
	if err == nil {
		err = j.m.records.checkSize(len(checkRecord(j.m.full(c.paths[0]))))
	}
	if err != nil {
		j.log(c).Error("znode was not removed, and will not be", zap.Error(err))
		done := make(chan error, 1)
		done <- err
		close(done)
		return done
	}
	c.dir, _ = split(c.paths[0])
	return j.add(c)
}

// add adds a chore and returns its channel done.
func (j *janitor) add(c *chore) <-chan error {
	done := make(chan error, 1)
	c.done = done
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		c.report(nil)
		return done
	}
	j.chores = append(j.chores, c)
	if !j.running {
		j.running = true
		j.wg.Go(j.clean)
	}
	signal(j.added)
	return done
}

// refuseChores makes the janitor refuse new chores, because the session is over.
func (j *janitor) refuseChores() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed = true
}

// take removes the chores that are due from the queue. If none is due, it returns the
// time until the next one. A negative time means that there are no chores, and ends clean.
func (j *janitor) take() (due []*chore, wait time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	now, over := time.Now(), j.gate.over.Err() != nil // after the end no chore has anything left to do
	wait = -1
	later := j.chores[:0]
	for _, c := range j.chores {
		d := max(0, c.due.Sub(now))
		if over {
			d = 0
		}
		if d == 0 && len(due) < maxChores {
			due = append(due, c)
			continue
		}
		later = append(later, c)
		// A chore that is due and exceeds maxChores leads to a wait of 0, and so to another
		// attempt.
		if wait < 0 || d < wait {
			wait = d
		}
	}
	// later shares the array, whose end must not keep the chores that were taken.
	clear(j.chores[len(later):])
	j.chores = later
	if len(due) == 0 && len(later) == 0 {
		// Under the lock under which add looks at running, so that no chore stays
		// without a goroutine.
		j.chores, j.running = nil, false
	}
	return due, wait
}

// clean attempts the chores as they become due, until there are none.
func (j *janitor) clean() {
	for {
		due, wait := j.take()
		if len(due) == 0 && wait < 0 {
			return
		}
		if len(due) == 0 {
			j.rest(wait)
			continue
		}
		// Not under the ctx of a caller: its end is the reason of most chores.
		w, err := j.gate.enter(context.Background(), true)
		if err != nil {
			// The session is over, and its ephemerals go with it.
			for _, c := range due {
				// No connection follows that could carry the removal.
				c.report(nil)
			}
			continue
		}
		j.attempt(w, due)
		j.gate.leave()
	}
}

// rest waits until a chore may be due.
func (j *janitor) rest(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-j.added:
	case <-j.gate.over.Done():
	}
}

// settle ends a chore whose attempt had a final result, and queues any other chore for a
// later attempt.
func (j *janitor) settle(c *chore, err error) {
	class, longest := ClassOf(err), maxBackoff
	switch {
	case class == ClassOK || class == ClassNoNode:
		c.report(nil)
		return
	case class == ClassNoAuth && c.isKnown():
		if c.report(err) {
			j.log(c).Error("znode was not removed, and is tried again now and then", zap.Error(err))
		}
		longest = maxReport
	case class == ClassNoAuth && !c.own:
		// When the caller knows of the refusal, it may use the path again. So the look comes before the report,
		// and at once.
		c.own, c.refusal, longest = true, err, 0
	case !c.pending(class):
		c.report(err)
		j.log(c).Error("znode was not removed, and will not be", zap.Error(err))
		return
	case class == ClassUnknown && c.attempts == 0:
		j.log(c).Warn("removal of a znode was refused, and is repeated", zap.Error(err))
	}
	// Each chore has its own time, so a refused chore does not delay other chores.
	c.attempts++
	c.due = time.Time{}
	if class != ClassConnectionLost || c.attempts > 2 { // see Session.Pause
		c.due = time.Now().Add(j.m.jitter.spread(backoff(c.attempts, firstBackoff, longest)))
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if guilt(err) > 0 && c.guilty >= maxGuilt {
		j.avoid(c, err)
	}
	j.chores = append(j.chores, c)
}

// avoid delays a chore whose read breaks one connection after another, by up to
// maxReport. j.mu is held.
func (j *janitor) avoid(c *chore, err error) {
	if c.guilty-guilt(err) < maxGuilt {
		j.log(c).Warn("removal of a znode breaks connections, and is repeated", zap.Error(err))
	}
	// Every attempt costs all other requests their connection.
	c.due = time.Now().Add(j.m.jitter.spread(backoff(c.guilty-maxGuilt+1, maxBackoff, maxReport)))
	// Such chores of one directory get the same time, and so share an attempt: otherwise
	// each of many chores would break a connection of its own.
	for _, other := range j.chores {
		if other.dir != c.dir || other.guilty < maxGuilt {
			continue
		}
		if other.due.After(c.due) {
			c.due = other.due
		}
		other.due = c.due
	}
}

func (j *janitor) log(c *chore) *zap.Logger {
	log := j.m.cfg.log.With(zap.String("directory", c.dir), sessionField(j.id.id))
	if c.guid != "" {
		log = log.With(zap.String("guid", c.guid))
	}
	return log.With(zap.Strings("paths", c.paths))
}
