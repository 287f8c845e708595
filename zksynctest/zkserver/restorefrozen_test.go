package zkserver_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A server that is restored during a freeze serves the restored tree after the thaw, also if the freeze outlasts the sync limit.
func TestRestoreIntoAFrozenServer(t *testing.T) {
	var snapshot bytes.Buffer
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		if err := s.Create("/a", nil); err != nil {
			t.Fatal(err)
		}
		if err := s.Snapshot(&snapshot); err != nil {
			t.Fatal(err)
		}
	})
	for name, test := range map[string]struct{ size, first, last int }{
		"standalone": {1, 1, 1}, "leader": {3, 3, 3}, "follower": {3, 1, 1}, "leader and follower": {3, 2, 3}, "all": {3, 1, 3},
	} {
		for _, d := range []time.Duration{time.Second, time.Hour} {
			t.Run(name+"/"+d.String(), func(t *testing.T) {
				ensemble(t, test.size, zkserver.Config{}, func(t *testing.T, s *zkserver.Server) {
					for i := test.first; i <= test.last; i++ {
						s.Endpoint(i).Freeze()
					}
					if err := s.Restore(bytes.NewReader(snapshot.Bytes())); err != nil {
						t.Fatal(err)
					}
					if wrong := s.Inconsistencies(); wrong != nil {
						t.Errorf("after Restore: %q", wrong)
					}
					time.Sleep(d)
					for i := test.first; i <= test.last; i++ {
						s.Endpoint(i).Thaw()
					}
					time.Sleep(time.Minute)
					for i := 1; i <= test.size; i++ {
						if !s.Endpoint(i).Serving() {
							t.Fatalf("endpoint %d does not serve a minute after the thaw; endpoint %d leads", i, s.Leader())
						}
						r := at(t, s, i, 10*time.Second)
						r.want(0, zkserver.OpSetData, setRec("/a"))
					}
					if wrong := s.Inconsistencies(); wrong != nil {
						t.Errorf("after the thaw: %q", wrong)
					}
				})
			})
		}
	}
}
