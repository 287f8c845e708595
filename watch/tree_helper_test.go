package watch_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/watch"
)

// tree reads a subtree by plain requests: data by path.
func tree(t testing.TB, s *session.Session, root string) map[string]string {
	t.Helper()
	must(t, s.Sync(t.Context(), root))
	found := make(map[string]string)
	var walk func(path string)
	walk = func(path string) {
		data, _, err := s.Get(t.Context(), path)
		if errors.Is(err, zk.ErrNoNode) {
			return
		}
		must(t, err)
		found[path] = string(data)
		names, _, err := s.Children(t.Context(), path)
		must(t, err)
		for _, name := range names {
			walk(path + "/" + name)
		}
	}
	walk(root)
	return found
}

// mirrored returns the contents of a Cache, by the Cache's own methods.
func mirrored(c *watch.Cache, root string) map[string]string {
	found := make(map[string]string)
	var walk func(path string)
	walk = func(path string) {
		state, ok := c.Get(path)
		if !ok {
			return
		}
		found[path] = string(state.Data)
		names, _ := c.Children(path)
		for _, name := range names {
			walk(path + "/" + name)
		}
	}
	walk(root)
	return found
}

// mustMirror checks that c equals the server's tree now.
func mustMirror(t testing.TB, c *watch.Cache, s *session.Session, root string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	want := tree(t, s, root)
	must(t, c.WaitSynced(ctx))
	got := mirrored(c, root)
	if !maps.Equal(got, want) || c.Len() != len(want) {
		difference := difference(got, want)
		time.Sleep(time.Second)
		t.Fatalf("the mirror holds %d znodes (Len %d), the server %d:\n%s\na second later they are equal: %v",
			len(got), c.Len(), len(want), difference, maps.Equal(mirrored(c, root), want))
	}
}

func difference(got, want map[string]string) string {
	var b strings.Builder
	paths := slices.Collect(maps.Keys(got))
	for path := range want {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	for _, path := range slices.Compact(paths) {
		g, inGot := got[path]
		w, inWant := want[path]
		if inGot != inWant || g != w {
			fmt.Fprintf(&b, "%s: mirror %q (%v), server %q (%v)\n", path, g, inGot, w, inWant)
		}
	}
	return b.String()
}

// A replica applies the events of a Cache and checks that each makes sense.
type replica struct {
	states map[string]watch.State
	newest map[string]int64
}

func newReplica() *replica {
	return &replica{states: make(map[string]watch.State), newest: make(map[string]int64)}
}

func (r *replica) apply(t testing.TB, root string, ev watch.TreeEvent) {
	t.Helper()
	if wrong := r.check(root, ev); wrong != "" {
		t.Fatal(wrong)
	}
}

// check applies an event, and says what is wrong with it, if anything.
func (r *replica) check(root string, ev watch.TreeEvent) (wrong string) {
	before, there := r.states[ev.Path]
	parent := ev.Path[:strings.LastIndexByte(ev.Path, '/')]
	_, hasParent := r.states[parent]
	switch {
	case (ev.Type == watch.Added) == there, ev.Exists == (ev.Type == watch.Removed):
		return fmt.Sprintf("event %v of %s, which the reader had: %v", ev.Type, ev.Path, there)
	case ev.Type != watch.Removed && ev.Path != root && !hasParent:
		return fmt.Sprintf("%s is %v before its parent", ev.Path, ev.Type)
	case ev.Type == watch.Changed && ev.Err == nil && ev.Stat.Czxid == before.Stat.Czxid && ev.Stat.Mzxid == before.Stat.Mzxid:
		return fmt.Sprintf("%s has not changed: %+v", ev.Path, ev)
	case ev.Exists && ev.Err == nil && ev.Stat.Mzxid < r.newest[ev.Path]:
		return fmt.Sprintf("%s goes back from zxid %#x to %#x", ev.Path, r.newest[ev.Path], ev.Stat.Mzxid)
	}
	if ev.Type == watch.Removed {
		for path := range r.states {
			if strings.HasPrefix(path, ev.Path+"/") {
				return fmt.Sprintf("%s is removed before %s", ev.Path, path)
			}
		}
		delete(r.states, ev.Path)
		return ""
	}
	r.states[ev.Path] = ev.State
	r.newest[ev.Path] = ev.Stat.Mzxid
	return ""
}

func (r *replica) data() map[string]string {
	found := make(map[string]string)
	for path, state := range r.states {
		found[path] = string(state.Data)
	}
	return found
}

// drain applies all pending events of a Cache. It works only in a bubble.
func (r *replica) drain(t testing.TB, root string, c *watch.Cache) (n int) {
	t.Helper()
	for {
		synctest.Wait()
		select {
		case ev := <-c.Events():
			r.apply(t, root, ev)
			n++
		default:
			return n
		}
	}
}
