package watch_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zksync/toolkit/watch"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A truth is a subtree of the server with its history. Every state of a znode has
// data of its own, so that a reader's state can be found in the history.
type truth struct {
	srv  *zkserver.Server
	root string
	wide int    // the names that a znode's child may have
	heal func() // ends the faults of the servers

	mu     sync.Mutex
	writes int
	paths  []string              // that exist, parents first
	states map[string][]string   // by path: the data of each state, gone for absence
	lists  map[string][][]string // by path: the sorted names, nil for absence
}

// gone stands for the data of a znode that does not exist.
const gone = "(gone)"

func newTruth(srv *zkserver.Server, root string) *truth {
	return &truth{srv: srv, root: root, wide: 3, states: map[string][]string{}, lists: map[string][][]string{}}
}

// history returns the states that a path has had, oldest first.
func (tr *truth) history(path string) []string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return append([]string{gone}, tr.states[path]...)
}

func (tr *truth) listHistory(path string) [][]string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return append([][]string{nil}, tr.lists[path]...)
}

// now is the number of the present state of each path that ever existed.
func (tr *truth) now() map[string]int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	numbers := make(map[string]int)
	for path, states := range tr.states {
		numbers[path] = len(states)
	}
	return numbers
}

// contents is the data of the znodes that exist.
func (tr *truth) contents() map[string]string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	found := make(map[string]string)
	for _, path := range tr.paths {
		states := tr.states[path]
		found[path] = states[len(states)-1]
	}
	return found
}

// change makes a random change, and returns a description of the change.
func (tr *truth) change(r *rand.Rand) (string, error) {
	if len(tr.paths) == 0 {
		return tr.create(tr.root)
	}
	path := tr.paths[r.IntN(len(tr.paths))]
	switch p := r.IntN(10); {
	case p < 4 && strings.Count(path[len(tr.root):], "/") < 3:
		if child := fmt.Sprintf("%s/%d", path, r.IntN(tr.wide)); !slices.Contains(tr.paths, child) {
			return tr.create(child)
		}
	case p < 8 && tr.isLeaf(path) && (path != tr.root || r.IntN(2) == 0):
		return tr.remove(path)
	}
	return tr.set(path)
}

// leaf returns one of the znodes without children, or "" if there is none.
func (tr *truth) leaf(r *rand.Rand) string {
	for _, i := range r.Perm(len(tr.paths)) {
		if tr.isLeaf(tr.paths[i]) {
			return tr.paths[i]
		}
	}
	return ""
}

func (tr *truth) isLeaf(path string) bool {
	return !slices.ContainsFunc(tr.paths, func(p string) bool { return strings.HasPrefix(p, path+"/") })
}

// A change is noted before it is made: a reader cannot be ahead of the notes then.

func (tr *truth) create(path string) (string, error) {
	tr.mu.Lock()
	tr.paths = append(tr.paths, path)
	tr.lists[path] = append(tr.lists[path], []string{})
	data := tr.note(path)
	tr.noteList(path, func(names []string, name string) []string { return append(names, name) })
	tr.mu.Unlock()
	return "create " + tr.short(path), tr.make(func() error { return tr.srv.Create(path, []byte(data)) })
}

func (tr *truth) set(path string) (string, error) {
	tr.mu.Lock()
	data := tr.note(path)
	tr.mu.Unlock()
	return "set " + tr.short(path), tr.make(func() error { return tr.srv.Set(path, []byte(data)) })
}

func (tr *truth) remove(path string) (string, error) {
	tr.mu.Lock()
	tr.paths = slices.DeleteFunc(tr.paths, func(p string) bool { return p == path })
	tr.states[path] = append(tr.states[path], gone)
	tr.lists[path] = append(tr.lists[path], nil)
	tr.noteList(path, func(names []string, name string) []string {
		return slices.DeleteFunc(names, func(n string) bool { return n == name })
	})
	tr.mu.Unlock()
	return "delete " + tr.short(path), tr.make(func() error { return tr.srv.Delete(path) })
}

// make makes a change, and waits while the servers have no leader. It ends the faults if they
// elect none.
func (tr *truth) make(change func() error) error {
	for round := 0; ; round++ {
		err := change()
		if !errors.Is(err, zkserver.ErrNotServing) {
			return err
		}
		if round == 20 {
			tr.heal()
		}
		time.Sleep(simTimeout / 10)
	}
}

func (tr *truth) note(path string) (data string) {
	tr.writes++
	data = fmt.Sprint(tr.writes)
	tr.states[path] = append(tr.states[path], data)
	return data
}

// noteList notes the new list of the parent of a path.
func (tr *truth) noteList(path string, change func(names []string, name string) []string) {
	if path == tr.root {
		return
	}
	cut := strings.LastIndexByte(path, '/')
	lists := tr.lists[path[:cut]]
	names := change(slices.Clone(lists[len(lists)-1]), path[cut+1:])
	slices.Sort(names)
	tr.lists[path[:cut]] = append(lists, names)
}

// short is a path for people: the root may be long.
func (tr *truth) short(path string) string { return "R" + path[len(tr.root):] }

// A progress is how far a reader has come in the history of something.
type progress int

// advance moves to the oldest state that fits and is not older than the state that
// was seen before. It reports false if no state fits.
func advance[T any](at *progress, history []T, fits func(T) bool) bool {
	for i := int(*at); i < len(history); i++ {
		if fits(history[i]) {
			*at = progress(i)
			return true
		}
	}
	return false
}

// shown is the state of a path, as the truth has it.
func shown(st watch.State, exists bool) string {
	if !exists {
		return gone
	}
	return string(st.Data)
}
