package zkserver_test

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// wordAt sends a four-letter word to endpoint i, and reads until the endpoint closes the
// connection.
func wordAt(t *testing.T, s *zkserver.Server, i int, text string) string {
	t.Helper()
	r := dialAt(t, s, i)
	r.write([]byte(text))
	answer, err := io.ReadAll(r.nc)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return string(answer)
}

// The four-letter words report the role and the state of each endpoint.
func TestFourLetterWordsOfAnEnsemble(t *testing.T) {
	cfg := zkserver.Config{FourLetterWords: []string{"*"}, ReadOnlyMode: true}
	ensemble(t, 3, cfg, func(t *testing.T, s *zkserver.Server) {
		has := func(i int, word string, want ...string) {
			t.Helper()
			got := wordAt(t, s, i, word)
			for _, part := range want {
				if !strings.Contains(got, part) {
					t.Errorf("%s of endpoint %d has no %q:\n%s", word, i, part, got)
				}
			}
		}
		at(t, s, 1, 10*time.Second).want(0, zkserver.OpGetData, watchRec("/"))
		has(1, "srvr", "\nMode: follower\n", "Connections: 2\n", "Received: 3\n", "Zxid: 0x100000001\n")
		has(3, "srvr", "\nMode: leader\n", "Connections: 1\n", "Received: 1\n", "\nProposal sizes last/min/max: ")
		has(1, "wchs", "1 connections watching 1 paths\n")
		has(3, "wchs", "0 connections watching 0 paths\n")
		has(2, "conf", "clientPort=2182\n", "serverId=2\n")
		has(1, "mntr", "zk_server_state\tfollower\n", "zk_watch_count\t1\n")
		has(3, "mntr", "zk_server_state\tleader\n", "zk_watch_count\t0\n")
		s.Endpoint(2).Lag()
		if err := s.Create("/new", nil); err != nil {
			t.Fatal(err)
		}
		has(1, "srvr", "Zxid: 0x100000002\nMode: follower\nNode count: 6\n")
		has(2, "srvr", "Zxid: 0x100000001\nMode: follower\nNode count: 5\n")

		s.Endpoint(2).Stop()
		s.Endpoint(3).Stop()
		synctest.Wait()
		const idle = "This ZooKeeper instance is not currently serving requests\n"
		for word, want := range map[string]string{"ruok": "imok", "isro": "null", "srvr": idle, "cons": idle, "wchp": idle, "gtmk": "306"} {
			if got := wordAt(t, s, 1, word); got != want {
				t.Errorf("%s without a quorum: %q, want %q", word, got, want)
			}
		}
		time.Sleep(3 * time.Second)
		has(1, "isro", "ro")
		has(1, "srvr", "\nREAD-ONLY mode; serving only read-only clients\n", "\nMode: read-only\n", "Node count: 6\n")
	})
}
