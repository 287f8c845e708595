package watch_test

import (
	"context"
	"slices"

	"github.com/go-zksync/toolkit/watch"
)

// A nodeReader reads a stream of Node, and checks the order of the states.
type nodeReader struct {
	stream *watch.Stream[watch.State]
	leave  context.CancelFunc
	path   string
	at     progress
	any    bool
	last   string
}

// follow begins a stream. Its first state includes what the session has read
// before.
func (sim *simulation) follow() *nodeReader {
	ctx, cancel := context.WithCancel(sim.ctx)
	nr := &nodeReader{stream: watch.Node(ctx, sim.m, sim.truth.root), leave: cancel, path: sim.truth.root}
	if sim.node != nil {
		nr.at = sim.node.at
	}
	return nr
}

func (nr *nodeReader) read(sim *simulation) {
	for {
		select {
		case st, open := <-nr.stream.Events():
			if !open {
				sim.fail("the stream of Node has ended: %v", nr.stream.Err())
				return
			}
			sim.counts.states++
			state := shown(st, st.Exists)
			history := sim.truth.history(nr.path)
			if nr.any && state == nr.last {
				sim.fail("Node reports %s twice", state)
			}
			if !advance(&nr.at, history, func(s string) bool { return s == state }) {
				sim.fail("Node reports %s, after %s of %v", state, history[nr.at], history)
			}
			nr.any, nr.last = true, state
		default:
			return
		}
	}
}

// A listReader does so with a stream of Children.
type listReader struct {
	stream *watch.Stream[[]string]
	path   string
	at     progress
	last   []string
}

func (lr *listReader) read(sim *simulation) {
	for {
		select {
		case names, open := <-lr.stream.Events():
			if !open {
				sim.fail("the stream of Children has ended: %v", lr.stream.Err())
				return
			}
			sim.counts.lists++
			history := sim.truth.listHistory(lr.path)
			if !advance(&lr.at, history, func(l []string) bool { return sameList(l, names) }) {
				sim.fail("Children reports %v, after %v of %v", names, history[lr.at], history)
			}
			lr.last = names
		default:
			return
		}
	}
}

// sameList tells an empty list from the nil list of a znode that does not exist.
func sameList(a, b []string) bool { return (a == nil) == (b == nil) && slices.Equal(a, b) }
