package rendezvous

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// maxNamed is the number of participants that a log line or an error names.
const maxNamed = 8

// A participantWait is the wait of one call of Enter or Leave, for log lines and
// errors. Several goroutines may use it, since a cancelled call returns before its step
// does and while the log still reads the reason. So each call has its own.
type participantWait struct {
	v  *barrierView // set once, like op
	op string

	mu    sync.Mutex
	wait  *session.Wait // nil until the participant has to wait
	over  bool
	late  bool              // a round goes on that began without the participant
	names []string          // of the first participants of the last listing
	more  int               // the number of further participants in that listing
	known map[string]string // the owners of some names, from their znodes
}

// start notes that the participant waits, and whether for the end of a round.
func (w *participantWait) start(inRound bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.late = inRound && w.op == "enter"
	if w.wait == nil && !w.over {
		w.wait = w.v.b.m.StartWait(w.op, w.v.b.path, w.reason)
	}
}

func (w *participantWait) stop() { w.end().Stop() }

// end prevents further waits, and returns the wait that has begun, or nil.
func (w *participantWait) end() *session.Wait {
	w.mu.Lock()
	defer w.mu.Unlock()
	// The step may go on after its call, and no caller would stop a wait that begins then.
	w.over = true
	return w.wait
}

// cancelled is the error of the call, whose ctx has ended.
func (w *participantWait) cancelled(ctx context.Context) error {
	if wait := w.end(); wait != nil {
		return wait.Cancelled(ctx)
	}
	return w.v.b.m.Cancelled(ctx)
}

// listed notes the names in the directory, and returns the names of the first few
// participants and the number of all.
func (w *participantWait) listed(names []string) (first []string, count int) {
	for _, name := range names {
		if IsParticipant(name) {
			if count++; count <= maxNamed {
				first = append(first, name)
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names, w.more = first, count-len(first)
	return first, count
}

// reason names the participants that the call waits for. It lists the directory first,
// unless ctx has ended.
func (w *participantWait) reason(ctx context.Context) error {
	if ctx.Err() == nil {
		w.refresh(ctx)
	}
	there, n := int(w.v.there.Load()), w.v.b.size
	w.mu.Lock()
	defer w.mu.Unlock()
	text, sep := "", ", "
	switch {
	case w.op == "leave":
		text = fmt.Sprintf("for the others to leave: %d are still inside", there)
	case w.late:
		text = fmt.Sprintf("for the end of a round that began without this participant: %d are still inside", there)
	default:
		// The error has the number of the participants already.
		text, sep = fmt.Sprintf("for %d more of %d to enter", max(0, n-there), n), ", beside "
	}
	for _, name := range w.names {
		text += sep + cmp.Or(w.known[name], strings.TrimPrefix(name, IDPrefix))
		sep = ", "
	}
	if w.more > 0 {
		text += fmt.Sprintf(" and %d more", w.more)
	}
	return errors.New(text)
}

// refresh lists the participants, unless there are too many of them.
func (w *participantWait) refresh(ctx context.Context) {
	s, dir := w.v.s, w.v.b.path
	if w.v.there.Load() > znode.MaxRelisted {
		return
	}
	names, _, err := s.Children(ctx, dir)
	if err != nil {
		return
	}
	first, count := w.listed(names)
	w.v.there.Store(int32(count))
	found, err := znode.ReadAll(ctx, s, dir, first)
	if err != nil {
		return
	}
	known := make(map[string]string, len(found))
	for _, z := range found {
		text := strings.TrimPrefix(z.Name, IDPrefix)
		if id := znode.Label(z.Data); id != "" && !strings.HasPrefix(id, znode.ProtectedPrefix) {
			text = id // of a participant of kazoo's
		}
		if z.Stat.EphemeralOwner == s.ID() {
			text += " (this process)"
		} else {
			text += fmt.Sprintf(" (session 0x%x)", uint64(z.Stat.EphemeralOwner))
		}
		known[z.Name] = text
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.known = known
}
