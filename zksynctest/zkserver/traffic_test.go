package zkserver

import (
	"testing"
	"time"
)

// The server keeps the Traffic of every live session, and of a bounded number of ended sessions.
func TestTrafficForgets(t *testing.T) {
	var l trafficLog
	living := map[int64]*session{}
	add := func(id int64) {
		sess := newSession(id, [16]byte{}, time.Second)
		living[id] = sess
		l.add(sess, living)
	}
	const lasting = 100
	for id := range int64(lasting) {
		add(id)
	}
	for id := int64(lasting); id < 10*trafficKept; id++ {
		add(id)
		delete(living, id)
		if n := len(l.counts); n > trafficKept+lasting+1 || n != len(l.ids) {
			t.Fatalf("%d sessions are remembered, %d in order, of which %d live", n, len(l.ids), lasting)
		}
		if l.counts[max(lasting, id-trafficKept/2)] == nil {
			t.Fatalf("a session is forgotten before %d others were", trafficKept/2)
		}
	}
	for id := range int64(lasting) {
		if l.counts[id] == nil {
			t.Fatalf("session %d lives and is forgotten", id)
		}
	}
}
