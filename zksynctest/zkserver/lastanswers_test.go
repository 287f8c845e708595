package zkserver_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A client that reads late, within its session timeout, gets all answers of before a closeSession and before a
// Disconnect, and the whole answer to a four-letter word, as from a real server.
func TestAnswersOfBeforeTheEndArrive(t *testing.T) {
	const number = 10
	ask := func(r *raw) {
		r.want(0, zkserver.OpCreate, createRec("/a", strings.Repeat("x", 500_000), 0))
		for range number {
			r.send(zkserver.OpGetData, existsRec("/a"))
		}
	}
	answered := func(t *testing.T, r *raw, number int) {
		t.Helper()
		time.Sleep(20 * time.Second)
		for i := range number {
			if _, err := r.read(); err != nil {
				t.Fatalf("answer %d of %d: %v", i+1, number, err)
			}
		}
		r.closed()
	}
	for name, test := range map[string]func(*testing.T, *zkserver.Server, *raw){
		"closeSession": func(t *testing.T, _ *zkserver.Server, r *raw) {
			ask(r)
			r.send(zkserver.OpCloseSession, nil)
			answered(t, r, number+1)
		},
		"Disconnect": func(t *testing.T, s *zkserver.Server, r *raw) {
			s.Inject(zkserver.Fault{Op: zkserver.OpSync, Do: zkserver.Disconnect})
			ask(r)
			r.send(zkserver.OpSync, rec{}.str("/"))
			answered(t, r, number)
		},
		"dump": func(t *testing.T, s *zkserver.Server, r *raw) {
			for i := range 4000 {
				r.create(fmt.Sprintf("/%s%05d", strings.Repeat("x", 200), i), 1)
			}
			c := rawDial(t, s)
			c.write([]byte("dump"))
			time.Sleep(5 * time.Second)
			_ = c.nc.SetReadDeadline(time.Now().Add(time.Second))
			all, err := io.ReadAll(c.nc)
			if got := strings.Count(string(all), "\t/x"); got != 4000 || err != nil {
				t.Errorf("%d of 4000 ephemerals, %v", got, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bounds.Bubble(t, func(t *testing.T) {
				s := start(t, zkserver.Config{FourLetterWords: []string{"*"}})
				test(t, s, session(t, s, 30*time.Second))
			})
		})
	}
}

// A client that does not read its last answers has its connection closed after its session timeout, counts for
// MaxConns until then, and keeps Stop and Close from nothing.
func TestLastAnswersForAPeerThatDoesNotRead(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		s := start(t, zkserver.Config{MaxConns: 1})
		if err := s.Create("/a", make([]byte, 500_000)); err != nil {
			t.Fatal(err)
		}
		leave := func() {
			r := session(t, s, 30*time.Second)
			for range 3 {
				r.send(zkserver.OpGetData, existsRec("/a"))
			}
			r.send(zkserver.OpCloseSession, nil)
			synctest.Wait()
		}
		leave()
		time.Sleep(29 * time.Second)
		rawDial(t, s).closed() // the limit of one connection is reached
		time.Sleep(2 * time.Second)
		leave() // there is room again
		begin := time.Now()
		s.Stop()
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		leave()
		if err := s.Close(); err != nil || time.Since(begin) > 0 {
			t.Errorf("Stop and Close took %v: %v", time.Since(begin), err)
		}
	})
}
