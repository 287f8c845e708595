package queue

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/zksynctest"
)

// A consumer that may not list the line of idle consumers leaves no contender behind when the answer to its join is lost,
// and so holds up no other consumer after its Close.
func TestJoinOfAConsumerThatMayNotListTheLine(t *testing.T) {
	inBubble(t, func(h harness) {
		h.put(0, 0)
		m := h.srv.Connect(h)
		s, err := m.Session(h.Context())
		h.must(err)
		const line = testQueue + "/" + idleName
		acl := append(zk.DigestACL(zk.PermAll, "other", "secret"), zk.WorldACL(zk.PermAll&^zk.PermRead)...)
		_, err = s.Create(h.Context(), line, nil, 0, acl...)
		h.must(err)
		other := h.consumer(h.srv.Connect(h), 8, InOrder)
		h.messages(other) // without another one, no consumer joins
		time.Sleep(time.Second)
		h.srv.Inject(zksynctest.Fault{Session: s.ID(), Path: line + "/*", At: zksynctest.BeforeReply, Do: zksynctest.Disconnect})
		ended := h.consumer(m, 8, InOrder)
		h.messages(ended)
		time.Sleep(time.Minute)
		h.close(ended)
		h.close(other)
		time.Sleep(time.Minute)
		if left, _ := h.srv.Children(line); len(left) > 0 {
			h.Errorf("the contenders %v are left behind", left)
		}
	})
}
