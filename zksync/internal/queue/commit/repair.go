package commit

import (
	"context"
	"fmt"

	"github.com/go-zksync/toolkit/session"
)

// markerRefused handles a request that found another version of the marker.
func (r *sender) markerRefused(err error) error {
	switch session.ClassOf(err) {
	case session.ClassNoNode, session.ClassBadVersion:
		// Another client has deleted or changed the marker. The next request creates another.
		r.retireMarker(err)
		return r.repaired(err)
	}
	return err
}

// retireMarker makes the next request create another marker, since err says that the
// marker tells no outcome any more.
func (r *sender) retireMarker(err error) {
	r.marker.retire()
	// The gate must forget its count, too: the marker may have gone with the whole queue, and the
	// znode of the gate in the next queue may have the same version by chance.
	_ = r.c.Gate.Refused(err)
}

// entryRefused handles a request that was refused because of the entry e, before which it
// had n entries.
func (r *sender) entryRefused(ctx context.Context, s *session.Session, e *Entry, n int, err error) error {
	if r.hasOutcome(e) {
		return nil // it was withdrawn while it was sent, and the other entries need no repair
	}
	if e.Dir != "" {
		switch failed := r.repair(ctx, s, e.Dir, err); {
		case failed == nil:
			return nil
		case ctx.Err() != nil || session.ClassOf(failed).Again():
			return failed
		default:
			err = failed
		}
	}
	if n == 0 {
		// No operation precedes it in the transaction, so it fails by itself.
		r.finish([]*Entry{e}, err)
	} else {
		r.limit = n // the entries before it go first
	}
	return nil
}

// hasOutcome reports whether an entry is finished.
func (r *sender) hasOutcome(e *Entry) bool {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	return e.finished
}

// repair makes the creation of a message in dir possible, which was refused with err. If
// nothing can be repaired, it returns err.
func (r *sender) repair(ctx context.Context, s *session.Session, dir string, err error) error {
	var failed error
	switch session.ClassOf(err) {
	case session.ClassNoNode:
		// One directory at a time, although each missing one refuses a request: directories that one transaction creates
		// have the same czxid, by which the claim table tells them apart.
		failed = r.c.MakeDir(ctx, s, dir)
	case session.ClassNodeExists:
		f := freeing{s: s, dir: dir, numberOf: r.c.NumberOf}
		failed = f.run(ctx)
		if f.gone {
			// The marker may have gone: it must not be needed for the outcome of the next request.
			r.retireMarker(err)
		}
		if f.waited {
			// Another producer may be faster again and again, but each time a message was consumed.
			r.repairs = 0
			return failed
		}
	default:
		return err
	}
	if failed != nil {
		return failed
	}
	return r.repaired(err)
}

// repaired counts a repair of a request that failed with err, and returns an error after
// too many of them.
func (r *sender) repaired(err error) error {
	if r.repairs++; r.repairs > maxRepairs {
		return fmt.Errorf("gave up after %d repairs: %w", maxRepairs, err)
	}
	return nil
}
