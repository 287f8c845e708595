package line

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// An ahead has the last known state of the contenders that block a contender, for log
// lines and errors.
type ahead struct {
	v *lineView

	mu    sync.Mutex
	front front      // of the newest listing
	first firstAhead // empty while nothing was read, as in most contenders of a long line
}

// A firstAhead has what was read of the first contender.
type firstAhead struct {
	name, label string
	owner       int64
	since       time.Time
}

// listed notes a listing.
func (a *ahead) listed(f front) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.front = f
}

// read notes the znode of a contender, if that contender is the first.
func (a *ahead) read(name string, data []byte, stat *zk.Stat) {
	a.mu.Lock()
	defer a.mu.Unlock()
	// The nearest contender is read as well, to watch it, and is often another one.
	if name == a.front.first {
		// Not the data, which may be long: another client can write any data to its znode.
		a.first = firstAhead{name, cmp.Or(znode.Label(data), name), stat.EphemeralOwner, time.UnixMilli(stat.Ctime)}
	}
}

// reason names the contenders ahead. It sends requests to find out more, unless ctx has
// ended.
func (a *ahead) reason(ctx context.Context) error {
	if ctx.Err() == nil {
		a.refresh(ctx)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return errors.New(a.text())
}

// refresh lists the line again, if it is short, and reads the first contender's
// znode.
func (a *ahead) refresh(ctx context.Context) {
	a.mu.Lock()
	// A copy: the waiter must be able to note a new listing while the requests below are under
	// way.
	f := a.front
	a.mu.Unlock()
	// The first contenders may have left since the listing. A waiter far behind in a long
	// line does not notice, since it watches the two nearest only.
	if f.count <= znode.MaxRelisted {
		names, _, err := a.v.s.ChildNames(ctx, a.v.line.Dir.Path)
		if err != nil {
			return
		}
		f = a.v.front(names)
		a.listed(f)
	}
	// No contender is ahead any more, and the event that tells the waiter is on its way.
	if f.first == "" {
		return
	}
	path := znode.Join(a.v.line.Dir.Path, f.first)
	data, stat, err := a.v.s.Get(ctx, path)
	if session.IsAnswerTooLarge(err) {
		var ok bool
		if ok, stat, err = a.v.s.Exists(ctx, path); !ok {
			return
		}
	}
	if err == nil {
		a.read(f.first, data, stat)
	}
}

// text returns the text of the reason; a.mu is held.
func (a *ahead) text() string {
	var b strings.Builder
	switch a.front.count {
	case 0:
		return "for the line to be listed"
	case 1:
		b.WriteString("behind one other")
	default:
		fmt.Fprintf(&b, "behind %d others", a.front.count)
	}
	verb := "the first of them is"
	if a.front.leads {
		verb = "held by"
	}
	// The contender that was read may have left before the newest listing.
	if a.first.name != a.front.first {
		fmt.Fprintf(&b, ", %s %s", verb, a.front.first)
		return b.String()
	}
	// The clock of the server may be ahead of ours.
	waited := max(0, time.Since(a.first.since).Round(time.Second))
	fmt.Fprintf(&b, ", %s %s (session 0x%x, in line for %v)", verb, a.first.label, uint64(a.first.owner), waited)
	if a.first.owner == a.v.s.ID() {
		b.WriteString("; that is this process itself, by another value or another call: locks are not reentrant")
	}
	return b.String()
}

// waiting returns the reason why the contender that began to wait last waits, nil if it waits no
// longer.
func (l *Line) waiting(ctx context.Context) error {
	if a := l.newest.Load(); a != nil {
		return a.reason(ctx)
	}
	return nil
}
