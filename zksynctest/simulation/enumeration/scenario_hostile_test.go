package enumeration_test

import (
	"path"
	"strings"

	"github.com/go-zookeeper/zk"
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
func (mb *mailbox) firstMessage() string {
	dir := queuePath
	for range 2 {
		first := mb.firstIn(dir)
		switch name := path.Base(first); {
		case name == "none":
			return ""
		case strings.HasPrefix(name, "qn-"):
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
