package enumeration_test

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/zksynctest/simulation/network"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// hostileScenariosOf returns a scenario of each kind of queue in which another client changes a
// message.
func hostileScenariosOf(kinds ...queueKind) (all []*scenario) {
	for _, kind := range kinds {
		// The first message has a child until the end, and cannot be removed.
		all = append(all, &scenario{name: kind.name + "-child", clients: 2, run: func(s *stage) {
			mb := withQueue(s, kind)
			mb.hostile = or(zk.ErrNotEmpty)
			a, b := s.clients[0], s.clients[1]
			mb.put(a, "1")
			first := mb.firstMessage()
			s.operator(func() error {
				if _, there := s.server.Get(first); !there {
					return nil
				}
				return s.server.Create(first+"/child", nil)
			})
			s.together(
				func() { mb.produce(a, "2") },
				func() { b.sleep(soon); mb.settleAll(b, ack) },
			)
			s.operator(func() error { return s.deleteIfThere(first + "/child") })
			mb.mu.Lock()
			mb.messages["1"].got = 0 // it comes again now, since no Ack can have removed it
			mb.mu.Unlock()
		}})
	}
	return all
}

// firstMessage returns the path of the first message, or nothing.
func (s *stage) firstMessage() string {
	dir := queuePath
	for range 2 {
		first := s.firstIn(dir)
		switch name := path.Base(first); {
		case name == "none":
			return ""
		case strings.HasPrefix(name, "qn-"), strings.HasPrefix(name, "entry-"):
			return first
		}
		dir = first
	}
	return ""
}

// deleteIfThere deletes a znode unless it is gone.
func (s *stage) deleteIfThere(path string) error {
	if _, there := s.server.Get(path); there {
		return s.server.Delete(path)
	}
	return nil
}

// steal lets another client, which knows no claims, take the first message.
func (s *stage) steal(network.Frame) {
	first := s.firstMessage()
	data, _ := s.server.Get(first)
	if first == "" || s.server.Delete(first) != nil {
		s.void("no message to take, or no leader")
		return
	}
	s.say("another client takes %s, %s", idOf(data), first)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stolen[idOf(data)] = true
}

func (s *stage) isStolen(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stolen[id]
}

// bargeLease is the znode of another client's unit.
const bargeLease = semaphorePath + "/leases/_c_5fd9e7c2-8fbc-4f8b-a1ff-3cbcb5a6c07b-lease-0000000000"

// barge lets another client take a unit without the lock of the semaphore, as a Curator does whose session has ended while it had
// the lock: it creates a lease, and counts the leases afterwards. It gives up if there are too many.
func (s *stage) barge(network.Frame) {
	// Only Curator's layout has this directory.
	if _, there := s.server.Get(semaphorePath + "/leases"); !there || s.server.Create(bargeLease, nil) != nil {
		s.void("no directory of leases, or no leader")
		return
	}
	leases, _ := s.server.Children(semaphorePath + "/leases")
	if len(leases) > semaphoreUnits {
		s.say("another client gives up a unit")
		s.operator(func() error { return s.deleteIfThere(bargeLease) })
		return
	}
	s.say("another client takes a unit")
	s.heal(while, func() { s.operator(func() error { return s.deleteIfThere(bargeLease) }) })
}

// barged returns the number of units that barge holds.
func (s *stage) barged() int {
	if leases, _ := s.server.Children(semaphorePath + "/leases"); slices.Contains(leases, path.Base(bargeLease)) {
		return 1
	}
	return 0
}

// remake lets another client delete the directory of the first message with everything in it and
// create it again. A little later another message gets the same name. A request that is under way at that
// moment could remove the new message, because no request names a directory otherwise than by its path.
func (s *stage) remake(network.Frame) {
	first := s.firstMessage()
	dir := path.Dir(first)
	// A directory numbers its messages from zero on, and uses no name twice. Wipe deletes the queue's own
	// directory.
	if !strings.HasSuffix(first, "-0000000000") || dir == queuePath || s.putAgain == nil || s.server.Leader() == 0 {
		s.void("no first message of a partition, or no leader")
		return
	}
	remade := time.Now()
	s.deleteTree(dir)
	s.deleted()
	if err := s.server.Create(dir, nil); err != nil {
		s.fail("create %s again: %v", dir, err)
	}
	s.say("another client has created %s again", dir)
	for _, c := range s.clients {
		c.force(s.net.Session(c.number))
	}
	s.heal(20*latency+2*s.of.world.far, func() {
		// A directory uses no name twice: the producers may have come so far.
		name := s.server.at(strings.TrimSuffix(first, "0000000000"))
		used := slices.ContainsFunc(s.server.Ops(), func(op zkserver.Op) bool { return !op.Time.Before(remade) && made(op, name) })
		if !used && s.server.Create(first, []byte("again")) == nil {
			s.putAgain("again")
		}
	})
}

// deleteTree deletes a znode and everything below it.
func (s *stage) deleteTree(top string) {
	names, _ := s.server.Children(top)
	for _, name := range names {
		s.deleteTree(top + "/" + name)
	}
	if err := s.server.Delete(top); err != nil {
		s.fail("delete %s: %v", top, err)
	}
}
