package faults

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
)

// changeTime bounds the delivery of a change. A change arrives within milliseconds on an idle
// machine, and never if there is a bug.
const changeTime = 10 * time.Second

// A subscriber misses no change that was made between two breaks of its connection,
// no matter after which frame of the second connection the second break comes.
func TestWatches(t *testing.T) {
	t.Parallel()
	for _, sub := range append(subscribers, manyWatches()) {
		t.Run(sub.name, func(t *testing.T) {
			t.Parallel()
			e := zksynctest.RealShared(t)
			missed, cases := 0, 0
			for frames := 0; ; frames++ {
				broken, ok := breakTwice(t, e, sub, frames)
				if !broken {
					break
				}
				if cases++; !ok {
					missed++
				}
			}
			t.Logf("%d of %d cases missed a change", missed, cases)
		})
	}
}

// breakTwice breaks the subscriber's connection, changes the subscriber's directory, breaks the
// next connection after the given number of frames, and checks that the subscriber learns of the
// change on the third connection. broken is false if the second connection did not break, because
// the subscriber was already up to date.
func breakTwice(t *testing.T, e *zksynctest.Ensemble, sub subscriber, frames int) (broken, ok bool) {
	t.Helper()
	dir := servers.Path(t)
	w := writer{t: t, m: e.Connect(t), dir: dir}
	sub.arrange(t, w)
	g := newGate()
	m := e.Connect(t, session.WithDialer(g.dial))
	known := sub.follow(t, m, dir)
	awaitWatches(t, m, g, sub, known)

	g.close()
	sub.change(t, w)
	g.open(frames)
	if !eventually(changeTime, func() bool {
		select {
		case <-g.broke:
			broken = true
		default:
		}
		return broken || known() == sub.want
	}) {
		t.Errorf("%s knows %s %v after its second connection, which did not break after %d frames; want %s", sub.name, shorten(known()), changeTime, frames, shorten(sub.want))
	}
	if !broken {
		return false, true
	}
	want := sub.want
	if sub.between != nil {
		sub.between(t, w)
		want = sub.last
	}
	g.open(unlimited)
	if !eventually(changeTime, func() bool { return known() == want }) {
		t.Errorf("%s knows %s %v after a change that was made before its second connection, which broke after %d frames; want %s",
			sub.name, shorten(known()), changeTime, frames, shorten(want))
		return true, false
	}
	return true, true
}

// awaitWatches waits until the subscriber knows its first state, or waits for it, and has all its
// watches.
func awaitWatches(t *testing.T, m *session.Manager, g *gate, sub subscriber, known func() string) {
	t.Helper()
	s, err := m.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	asked, same := int64(0), 0
	if !eventually(patience, func() bool {
		// The answer to a sync comes after the answers to all earlier requests.
		if err := s.Sync(t.Context(), "/"); err != nil {
			t.Error(err)
			return true
		}
		if n := g.watches.Load(); n > asked {
			asked, same = n, 0
		} else if n > 0 {
			same++
		}
		return same >= 3 && (sub.first == "" || known() == sub.first)
	}) {
		t.Fatalf("%s knows %s, want %s, and has asked for %d watches", sub.name, shorten(known()), shorten(sub.first), asked)
	}
}

// manyWatches is a Tree with more watches than one setWatches request may carry:
// the second connection can break between the answers to two such requests.
func manyWatches() subscriber {
	var names []string
	for i := range 400 {
		names = append(names, fmt.Sprintf("/%03d-%s", i, strings.Repeat("x", 200)))
	}
	const changed = 4
	var want []string
	for i := 0; i < len(names); i += len(names) / changed {
		want = append(want, names[i][1:]+"=new")
	}
	return subscriber{
		name: "Tree with several batches of watches",
		arrange: func(_ *testing.T, w writer) {
			w.create("", "")
			w.createAll(names, "")
		},
		follow: followTree,
		first:  "[]",
		change: func(_ *testing.T, w writer) {
			for i := 0; i < len(names); i += len(names) / changed {
				w.set(names[i], "new")
			}
		},
		want: fmt.Sprint(slices.Sorted(slices.Values(want))),
	}
}

// shorten cuts a long text after its beginning.
func shorten(text string) string {
	const limit = 120
	if len(text) <= limit {
		return text
	}
	return fmt.Sprintf("%s... (%d bytes)", text[:limit], len(text))
}
