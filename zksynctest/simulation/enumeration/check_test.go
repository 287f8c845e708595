package enumeration_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A probe checks, after a case, whether something can be acquired again.
type probe struct {
	what string
	try  func(ctx context.Context, c *client) error
}

// probe adds a probe, which each client makes after the scenario.
func (s *stage) probe(what string, try func(ctx context.Context, c *client) error) {
	s.probes = append(s.probes, probe{what, try})
}

// mayRemain allows znodes to remain after faults with some harm, which do not exist after the run
// without faults.
func (s *stage) mayRemain(path string, after harm) { s.remains[path] = after }

// check checks the state after a case, while the Managers are open: every lock can be
// acquired again, and no session, znode or watch is left that is not left by trace, the run without
// faults. trace is nil in that run itself.
func (s *stage) check(out, trace *outcome) {
	for _, c := range s.clients {
		if c.reopen(); s.failed() {
			return
		}
		for _, p := range s.probes {
			ctx, cancel := context.WithTimeout(s.ctx, 2*timeout)
			if err := p.try(ctx, c); err != nil {
				s.fail("client %d cannot have %s again: %v", c.number, p.what, err)
			}
			cancel()
		}
	}
	s.checkServer(out, trace)
	if s.of.world.check != nil {
		s.of.world.check(s)
	}
	if !s.failed() {
		s.checkQuiet()
	}
	if !s.failed() {
		s.checkWatches(out, trace)
	}
}

// reopen opens a new Manager for a client whose Manager a fault has closed.
func (c *client) reopen() {
	c.mu.Lock()
	if c.closing {
		c.old, c.m, c.closing = append(c.old, c.m), nil, false
	}
	c.mu.Unlock()
	c.connect()
}

// checkServer waits until the server has no sessions and znodes except the expected ones, and
// except empty containers.
func (s *stage) checkServer(out, trace *outcome) {
	var wrong []string
	for range 8 {
		wrong = nil
		out.left = s.znodes("/")
		if n, want := len(s.server.Sessions()), len(s.clients); n != want {
			wrong = append(wrong, "the number of sessions")
		}
		for path, n := range out.left {
			if trace != nil && n > trace.left[path] && s.remains[path]&s.harm() == 0 && !s.isDirectoryThatStays(path) {
				wrong = append(wrong, fmt.Sprintf("%d of %s instead of %d", n, path, trace.left[path]))
			}
		}
		if len(wrong) == 0 {
			return
		}
		s.pause(timeout / 2)
		// Containers that only this case has used may be empty now. Servers look for them once a
		// minute.
		s.server.ReapNow()
	}
	slices.Sort(wrong)
	s.fail("left behind: %s", strings.Join(wrong, ", "))
}

// emptyDirectories matches the directories that only containers remove.
var emptyDirectories = regexp.MustCompile(`^/[a-z]+(/[a-z]+(/t-\*)?(/(zksync|locks|leases)[a-z-]*)?)?$`)

// isDirectoryThatStays reports whether a path is a directory that servers do not remove. Servers that
// know no containers remove none, and in kazoo's layout the directories are none. Others remove no container that never had a child: the client that
// created the line of the idle consumers may have given up before it joined.
func (s *stage) isDirectoryThatStays(path string) bool {
	// Consumers delete the directory of a span when its time is over, and these have ended before.
	if strings.HasSuffix(path, "zksync-idle") || strings.HasSuffix(path, "/t-*") {
		return true
	}
	ordinary := slices.Contains(s.server.without, zkserver.OpCreateContainer) || s.of.world.layout == zksync.LayoutKazoo || s.harm()&downgrades != 0
	return ordinary && emptyDirectories.MatchString(path)
}

// checkWatches checks that the server has exactly the watches that the Managers know: without a
// watch that it should have, a client misses a change, and nobody removes any other watch. Calls
// wait for no more watches than in the run without faults.
func (s *stage) checkWatches(out, trace *outcome) {
	for i, c := range s.clients {
		live, err := c.manager().Session(s.ctx)
		if err != nil {
			s.fail("client %d: %v", c.number, err)
			return
		}
		st := c.manager().Stats()
		if n := s.server.WatchesOf(live.ID()); n != st.Watches {
			s.fail("client %d: the server has %d watches of its session, and the Manager knows %d", c.number, n, st.Watches)
		}
		out.waited = append(out.waited, st.Watches-st.IdleWatches)
		if trace != nil && out.waited[i] > trace.waited[i] {
			s.fail("client %d: calls wait for %d watches instead of %d", c.number, out.waited[i], trace.waited[i])
		}
	}
}

// awaitSessions waits until each session at the server is the session of an open Manager. The
// sessions that a Manager had before, or could not close, have ended then.
func (s *stage) awaitSessions(ctx context.Context) error {
	for {
		var former []string
		open := make(map[int64]bool)
		for _, c := range s.clients {
			live, err := c.manager().Session(ctx)
			if err != nil {
				return err
			}
			open[live.ID()] = true
		}
		for _, info := range s.server.Sessions() {
			if !open[info.ID] {
				former = append(former, fmt.Sprintf("%#x", info.ID))
			}
		}
		if len(former) == 0 {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("sessions that no Manager has any more have not ended: %s", strings.Join(former, ", "))
		}
		s.pause(timeout / 8)
	}
}

// changing matches the parts of names that differ from run to run.
var changing = regexp.MustCompile(`[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}|[0-9]{6,}`)

// znodes counts the znodes below path by their paths, without the GUIDs and numbers that
// differ from run to run.
func (s *stage) znodes(path string) map[string]int {
	all := make(map[string]int)
	s.countZnodes(all, path)
	return all
}

func (s *stage) countZnodes(all map[string]int, path string) {
	names, _ := s.server.Children(path)
	for _, name := range names {
		child := strings.TrimSuffix(path, "/") + "/" + name
		if child == "/zookeeper" {
			continue
		}
		all[changing.ReplaceAllString(child, "*")]++
		s.countZnodes(all, child)
	}
}

// maxQuiet is the number of requests that an idle session makes within its timeout to
// keep itself alive.
const maxQuiet = 4

// checkQuiet checks that no session sends heartbeats as if it held a lease: no lease is held any
// more. A Manager that has replaced its session may still close the former session: that request
// does not count for a live session.
func (s *stage) checkQuiet() {
	s.pause(timeout / 2) // the last heartbeat may be under way
	from := time.Now()
	s.pause(timeout)
	asked, live := make(map[int64]int), make(map[int64]bool)
	for _, info := range s.server.Sessions() {
		live[info.ID] = true
	}
	for _, op := range s.server.Ops() {
		if op.Time.Before(from) || op.Code == zkserver.OpPing {
			continue
		}
		asked[op.Session]++
		if op.Code == zkserver.OpCloseSession && !live[op.Session] {
			continue
		}
		if op.Code != zkserver.OpSync && op.Code != zkserver.OpConnect {
			s.fail("session %#x, which holds nothing, asks the server for %v %s", op.Session, op.Code, op.Path)
			return
		}
	}
	for _, info := range s.server.Sessions() {
		// A client keeps the shorter timeout that another server has granted before.
		if n := asked[info.ID]; n > maxQuiet*int(timeout/min(info.Timeout, s.shortest)) {
			s.fail("session %#x, which holds nothing, makes %d requests in %v", info.ID, n, timeout)
		}
	}
}

// checkClosed checks that the server has no sessions and watches after all Managers
// are closed.
func (s *stage) checkClosed() {
	for range 6 {
		if len(s.server.Sessions()) == 0 && s.server.Watches() == 0 {
			break
		}
		time.Sleep(timeout / 2) // a session that could not be closed has to expire
	}
	for _, info := range s.server.Sessions() {
		s.fail("session %#x is left after Manager.Close, with %v", info.ID, info.Ephemerals)
	}
	if n := s.server.Watches(); n > 0 {
		s.fail("%d watches are left on the server", n)
	}
	for _, c := range s.clients {
		for _, m := range c.managers() {
			if state := m.State(); state != session.Closed {
				s.fail("the state of a closed Manager is %v", state)
			}
		}
	}
}
