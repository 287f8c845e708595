package zkserver_test

import (
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// In a bubble no goroutine or timer runs while the server is idle. TestTimeIsCheap runs a day in a
// bubble, which must take milliseconds of real time. The limits are far above that, for busy
// machines.
func TestTimeIsCheap(t *testing.T) {
	for _, c := range []struct {
		name  string
		limit time.Duration
		run   func(*testing.T)
	}{
		{"a session of half a minute expires", 2 * time.Second, func(t *testing.T) {
			s := start(t, zkserver.Config{})
			r := session(t, s, 30*time.Second)
			r.create("/e", 1)
			begin := time.Now()
			r.closed() // because the client sends no pings
			if took := time.Since(begin); took <= 30*time.Second || took > 32*time.Second {
				t.Errorf("it expired after %v", took)
			}
			if _, ok := s.Get("/e"); ok {
				t.Error("its ephemeral is there")
			}
		}},
		{"an hour of idle pings", 5 * time.Second, func(t *testing.T) {
			s := start(t, zkserver.Config{})
			conn := dial(t, s, 10*time.Second)
			id := conn.SessionID()
			time.Sleep(time.Hour)
			if got := s.Sessions(); len(got) != 1 || got[0].ID != id || !got[0].Connected {
				t.Errorf("%+v", got)
			}
			if n := s.Traffic(id).Requests; n < 360 {
				t.Errorf("%d requests in an hour", n)
			}
		}},
		{"a day of partition", 5 * time.Second, func(t *testing.T) {
			s := start(t, zkserver.Config{})
			lost, other := session(t, s, 40*time.Second), dial(t, s, 40*time.Second)
			lost.create("/e", 1)
			_, _, gone, err := other.ExistsW("/e")
			if err != nil {
				t.Fatal(err)
			}
			s.Partition(lost.id)
			begin := time.Now()
			<-gone
			if took := time.Since(begin); took > 42*time.Second {
				t.Errorf("it went after %v", took)
			}
			time.Sleep(24 * time.Hour)
			s.Heal(lost.id)
			if back := lost.again(s).welcome(); back.id != 0 {
				t.Errorf("session %#x lives after a day", back.id)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			begin := time.Now()
			bounds.Bubble(t, c.run)
			if took := time.Since(begin); took > c.limit {
				t.Errorf("it took %v, want %v at most", took, c.limit)
			} else {
				t.Log(took)
			}
		})
	}
}
