package zkserver_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// No client waits for a client that does not read its events. TestASlowReaderHoldsUpNobody queues
// 100,000 watch events for one client that does not read. Other clients wait for no time of the
// bubble's clock, the queue takes little more than the bytes of the events, and finally all events
// arrive in order.
func TestASlowReaderHoldsUpNobody(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		s := start(t, zkserver.Config{OpsKept: 1})
		const events = 100_000
		slow, writer := session(t, s, 40*time.Second), session(t, s, 40*time.Second)
		slow.addWatch("/", recursiveMode)
		paths := make([]string, 10)
		for i := range paths {
			paths[i] = fmt.Sprintf("/path-%d", i)
			if err := s.Create(paths[i], nil); err != nil {
				t.Fatal(err)
			}
			slow.event()
		}
		synctest.Wait()
		before := heap()
		begin := time.Now()
		for i := range events {
			writer.want(0, zkserver.OpSetData, setRec(paths[i%len(paths)]))
		}
		if d := time.Since(begin); d != 0 {
			t.Errorf("the writer waited for %v", d)
		}
		synctest.Wait()
		const frame = 4 + 16 + 4 + 4 + 4 + 7
		if grown := heap() - before; grown > events*frame*5/4 {
			t.Errorf("%d bytes wait as %d", events*frame, grown)
		}
		_ = slow.nc.SetReadDeadline(time.Now().Add(time.Minute))
		var buf [frame]byte
		for i := range events {
			if _, err := io.ReadFull(slow.nc, buf[:]); err != nil {
				t.Fatal(err)
			}
			if got := string(buf[frame-7:]); binary.BigEndian.Uint32(buf[20:]) != 3 || got != paths[i%len(paths)] {
				t.Fatalf("event %d is % x", i, buf)
			}
		}
		synctest.Wait()
		if left := heap() - before; left > 1<<20 {
			t.Errorf("%d bytes are left of what was read", left)
		}
		slow.want(0, zkserver.OpPing, nil)
	})
}

// The events that are queued for a client that does not read are freed with its connection.
func TestASlowReaderThatIsGone(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		s := start(t, zkserver.Config{OpsKept: 1})
		slow := session(t, s, 4*time.Second)
		slow.addWatch("/", persistentMode)
		before := heap()
		for range 50_000 {
			if err := s.Set("/", nil); err != nil {
				t.Fatal(err)
			}
		}
		if grown := heap() - before; grown < 1<<20 {
			t.Fatalf("%d bytes: nothing waits", grown)
		}
		time.Sleep(10 * time.Second) // the session expires
		synctest.Wait()
		if left := heap() - before; left > 1<<20 || len(s.Sessions()) != 0 {
			t.Errorf("%d bytes left, sessions %v", left, s.Sessions())
		}
		_ = slow.nc.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := io.Copy(io.Discard, slow.nc); err != nil {
			t.Errorf("its connection is still there: %v", err)
		}
	})
}
