package session

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// A janitor removes znodes that callers left behind. A goroutine repeats the attempts of
// each chore until the znode is gone, the session is over, or the server has refused the
// removal for good.
type janitor struct {
	m      *shared
	gate   *gate
	id     *identity
	wg     *sync.WaitGroup // the wait group of the Session
	window chan struct{}   // has an element for each attempt that runs

	mu      sync.Mutex
	closed  bool
	orphans map[string][]*chore // chores without paths, by directory; an entry exists while search runs
}

// maxAttempts is the number of attempts at the same time: thousands of removals must not
// delay the transactions that keep a hold.
const maxAttempts = 128

// discard adds a chore for one znode, and returns a channel that is closed when the chore is done.
func (j *janitor) discard(c *chore) <-chan struct{} {
	c.done = make(chan struct{})
	// No znode has an invalid path, so there is nothing to remove. The requests for a path above
	// the limit, of which the check is the longest, would break one connection after another.
	err := checkPath(c.paths[0], false)
	if err == nil {
		err = j.m.records.checkSize(len(checkRecord(j.m.full(c.paths[0]))))
	}
	if err != nil {
		j.log(c).Error("znode was not removed, and will not be", zap.Error(err))
		c.end()
		return c.done
	}
	c.dir, _ = split(c.paths[0])
	j.add(c)
	return c.done
}

// add adds a chore.
func (j *janitor) add(c *chore) {
	j.mu.Lock()
	defer j.mu.Unlock()
	// Under mu: no goroutine starts beside the Wait behind refuseChores.
	switch others, searching := j.orphans[c.dir]; {
	case j.closed:
		c.end()
	case len(c.paths) > 0:
		j.wg.Go(func() {
			j.repeat(c, func(w *wire.Conn) error { return c.remove(&j.m.records, w, j.id.id) })
			c.end()
		})
	default:
		j.orphans[c.dir] = append(others, c)
		if !searching {
			j.wg.Go(func() { j.search(c.dir) })
		}
	}
}

// refuseChores makes the janitor refuse new chores, because the session is over.
func (j *janitor) refuseChores() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed = true
}

// search finds the znodes of chores without paths in a directory, until there are no such
// chores. The chores share each look: otherwise each of many chores would break a
// connection of its own if the list of the directory breaks connections.
func (j *janitor) search(dir string) {
	for again := true; again; {
		var chores []*chore
		all := &chore{dir: dir}
		live := j.repeat(all, func(w *wire.Conn) error {
			// Before the look, which does not show the creates that end later.
			j.mu.Lock()
			chores = append(chores, j.orphans[dir]...)
			j.orphans[dir] = nil
			j.mu.Unlock()
			all.paths = nil
			for _, c := range chores {
				all.paths = append(all.paths, join(dir, c.guid)) // for the log
			}
			found, unproven, err := lookInto(&j.m.records, w, dir)
			if err != nil {
				return err
			}
			chores = slices.DeleteFunc(chores, func(c *chore) bool {
				if c.paths = found[c.guid]; len(c.paths) > 0 {
					j.add(c)
				}
				return len(c.paths) > 0
			})
			if len(chores) > 0 {
				return unproven
			}
			return nil
		})
		j.mu.Lock()
		if again = live && len(j.orphans[dir]) > 0; !again {
			// Under the lock under which add looks for the entry, so that no chore stays
			// without a goroutine.
			delete(j.orphans, dir)
		}
		j.mu.Unlock()
	}
}

// repeat calls attempt until the outcome is final. It returns false if the session is over.
func (j *janitor) repeat(c *chore, attempt func(*wire.Conn) error) bool {
	for {
		select {
		case j.window <- struct{}{}:
		case <-j.gate.over.Done():
			return false
		}
		// Not under the ctx of a caller: its end is the reason of most chores.
		w, err := j.gate.enter(context.Background(), true)
		if err != nil {
			<-j.window
			return false // the ephemerals of the session go with it
		}
		err = attempt(w)
		j.gate.leave()
		<-j.window
		pause, final := j.judge(c, err)
		if final || sleep(j.gate.over, pause, j.gate.over) != nil {
			return final
		}
	}
}

// judge returns the pause before the next attempt, or reports that the outcome of an
// attempt is final.
func (j *janitor) judge(c *chore, err error) (pause time.Duration, final bool) {
	class, guilt := ClassOf(err), guilt(err)
	if !c.pending(class) {
		if class != ClassOK && class != ClassNoNode {
			j.log(c).Error("znode was not removed, and will not be", zap.Error(err))
		}
		return 0, true
	}
	if class == ClassUnknown && c.attempts == 0 {
		j.log(c).Warn("removal of a znode was refused, and is repeated", zap.Error(err))
	}
	c.attempts++
	c.guilty += guilt
	// A caller's read ends at maxGuilt. A chore continues, because an orphan that stays
	// blocks other contenders for as long as the session lives.
	if guilt > 0 && c.guilty >= maxGuilt {
		if c.guilty-guilt < maxGuilt {
			j.log(c).Warn("removal of a znode breaks connections, and is repeated", zap.Error(err))
		}
		// Every attempt costs all other requests their connection.
		return j.m.jitter.spread(backoff(c.guilty-maxGuilt+1, maxBackoff, maxReport)), false
	}
	if class == ClassConnectionLost && c.attempts <= 2 { // see Session.Pause
		return 0, false
	}
	return j.m.jitter.backoff(c.attempts), false
}

func (j *janitor) log(c *chore) *zap.Logger {
	return j.m.cfg.log.With(zap.String("directory", c.dir), sessionField(j.id.id), zap.Strings("paths", c.paths))
}
