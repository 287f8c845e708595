package zkserver_test

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// word sends a four-letter word, with its argument, and reads until the server closes the
// connection.
func word(t *testing.T, s *zkserver.Server, text string) string {
	t.Helper()
	r := rawDial(t, s)
	r.write([]byte(text))
	_ = r.nc.SetReadDeadline(time.Now().Add(time.Minute))
	answer, err := io.ReadAll(r.nc)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return string(answer)
}

func withWords(t *testing.T, test func(t *testing.T, s *zkserver.Server)) {
	t.Helper()
	bounds.Bubble(t, func(t *testing.T) {
		test(t, start(t, zkserver.Config{FourLetterWords: []string{"*"}}))
	})
}

// The four-letter words of a new server have the answers of a real one.
func TestFourLetterWordsOfAFreshServer(t *testing.T) {
	withWords(t, func(t *testing.T, s *zkserver.Server) {
		for _, c := range []struct{ word, want string }{
			{"ruok", "imok"},
			{"isro", "rw"},
			{"dirs", "datadir_size: 0\nlogdir_size: 0\n"},
			{"hash", ""},
			{"gtmk", "306"},
			{"stmk\x00\x00\x00\x00\x00\x00\x01\x00", "256"},
			{"gtmk", "256"},
			{"cons", " /127.0.0.1:32775[0](queued=0,recved=1,sent=0)\n\n"},
			{"crst", "Connection stats reset.\n"},
			{"srst", "Server stats reset.\n"},
			{
				"srvr", "Zookeeper version: 3.9.4-zksynctest, built on 08/19/2025 19:53 UTC\n" +
					"Latency min/avg/max: 0/0.0/0\nReceived: 1\nSent: 1\nConnections: 1\nOutstanding: 0\n" +
					"Zxid: 0x0\nMode: standalone\nNode count: 5\n",
			},
			{
				"stat", "Zookeeper version: 3.9.4-zksynctest, built on 08/19/2025 19:53 UTC\n" +
					"Clients:\n /127.0.0.1:32779[0](queued=0,recved=1,sent=0)\n\n" +
					"Latency min/avg/max: 0/0.0/0\nReceived: 2\nSent: 2\nConnections: 1\nOutstanding: 0\n" +
					"Zxid: 0x0\nMode: standalone\nNode count: 5\n",
			},
			{
				"conf", "clientPort=2181\nsecureClientPort=-1\ndataDir=\ndataDirSize=0\ndataLogDir=\ndataLogSize=0\n" +
					"tickTime=2000\nmaxClientCnxns=0\nminSessionTimeout=4000\nmaxSessionTimeout=40000\n" +
					"clientPortListenBacklog=-1\nserverId=0\n",
			},
			{
				"dump", "SessionTracker dump:\nSession Sets (0)/(0):\nephemeral nodes dump:\nSessions with Ephemerals (0):\n" +
					"Connections dump:\nConnections Sets (1)/(1):\n1 expire at Sat Jan 01 00:00:20 UTC 2000:\n" +
					"\tip: /127.0.0.1:32781 sessionId: 0x0\n",
			},
			{"wchs", "0 connections watching 0 paths\nTotal watches:0\n"},
			{"wchc", "\n"},
			{"wchp", "\n"},
		} {
			if got := word(t, s, c.word); got != c.want {
				t.Errorf("%s:\n%s\nwant\n%s", c.word, got, c.want)
			}
		}
	})
}

// The four-letter words report sessions, connections, watches and ephemerals as a real server does.
func TestFourLetterWordsOfABusyServer(t *testing.T) {
	withWords(t, func(t *testing.T, s *zkserver.Server) {
		a, b := session(t, s, 10*time.Second), session(t, s, 20*time.Second)
		a.create("/e", 1)
		a.want(0, zkserver.OpGetData, watchRec("/e"))
		a.addWatch("/", recursiveMode)
		b.want(0, zkserver.OpGetData, watchRec("/e"))
		b.want(0, zkserver.OpGetChildren, watchRec("/")) // in the table that no word shows
		s.Inject(zkserver.Fault{Op: zkserver.OpSync, Do: zkserver.Delay(3 * time.Millisecond)})
		s.Inject(zkserver.Fault{Op: zkserver.OpSync, At: zkserver.BeforeReply, Do: zkserver.Delay(4 * time.Millisecond)})
		b.want(0, zkserver.OpSync, rec{}.str("/"))
		id := map[string]int64{"a": a.id, "b": b.id}
		for _, c := range []struct{ word, want string }{
			{"wchs", "2 connections watching 2 paths\nTotal watches:3\n"},
			{"wchc", fmt.Sprintf("0x%x\n\t/\n\t/e\n0x%x\n\t/e\n\n", id["a"], id["b"])},
			{"wchp", fmt.Sprintf("/\n\t0x%x\n/e\n\t0x%x\n\t0x%x\n\n", id["a"], id["a"], id["b"])},
			{
				"dump", fmt.Sprintf("SessionTracker dump:\nSession Sets (2)/(2):\n"+
					"1 expire at Sat Jan 01 00:00:12 UTC 2000:\n\t0x%x\n1 expire at Sat Jan 01 00:00:22 UTC 2000:\n\t0x%x\n"+
					"ephemeral nodes dump:\nSessions with Ephemerals (1):\n0x%x:\n\t/e\n"+
					"Connections dump:\nConnections Sets (3)/(3):\n"+
					"1 expire at Sat Jan 01 00:00:12 UTC 2000:\n\tip: /127.0.0.1:32768 sessionId: 0x%x\n"+
					"1 expire at Sat Jan 01 00:00:20 UTC 2000:\n\tip: /127.0.0.1:32773 sessionId: 0x0\n"+
					"1 expire at Sat Jan 01 00:00:22 UTC 2000:\n\tip: /127.0.0.1:32769 sessionId: 0x%x\n",
					a.id, b.id, a.id, a.id, b.id),
			},
			{
				"cons", fmt.Sprintf(" /127.0.0.1:32768[1](queued=0,recved=4,sent=4,sid=0x%x,lop=ADDW,est=946684800000,to=10000,"+
					"lcxid=0x3,lzxid=0x3,lresp=0,llat=0,minlat=0,avglat=0,maxlat=0)\n"+
					" /127.0.0.1:32769[1](queued=0,recved=4,sent=4,sid=0x%x,lop=SYNC,est=946684800000,to=20000,"+
					"lcxid=0x3,lzxid=0x3,lresp=7,llat=7,minlat=0,avglat=1,maxlat=7)\n"+
					" /127.0.0.1:32774[0](queued=0,recved=1,sent=0)\n\n", a.id, b.id),
			},
			{
				"srvr", "Zookeeper version: 3.9.4-zksynctest, built on 08/19/2025 19:53 UTC\n" +
					"Latency min/avg/max: 0/0.875/7\nReceived: 14\nSent: 13\nConnections: 3\nOutstanding: 0\n" +
					"Zxid: 0x3\nMode: standalone\nNode count: 6\n",
			},
		} {
			// The ports of the connections that send the words count up; only the ports of the
			// table matter.
			if got := word(t, s, c.word); got != c.want {
				t.Errorf("%s:\n%s\nwant\n%s", c.word, got, c.want)
			}
		}
		if err := s.Set("/e", nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got, want := word(t, s, "cons"), fmt.Sprintf("recved=4,sent=5,sid=0x%x,", a.id); !strings.Contains(got, want) {
			t.Errorf("%s\nwant %s in it, for an event", got, want)
		}
		word(t, s, "srst")
		s.Inject(zkserver.Fault{Op: zkserver.OpSync, Do: zkserver.Delay(3 * time.Millisecond)})
		b.event()
		b.want(0, zkserver.OpSync, rec{}.str("/"))
		if got := word(t, s, "srvr"); !strings.Contains(got, "\nLatency min/avg/max: 3/3.0/3\n") {
			t.Errorf("after a delay before the commit:\n%s", got)
		}
		word(t, s, "crst")
		if got, want := word(t, s, "cons"), fmt.Sprintf("sent=0,sid=0x%x,lop=NA,est=946684800000,to=10000,lzxid=0xffffffffffffffff,lresp=0,llat=0,", a.id); !strings.Contains(got, want) {
			t.Errorf("%s\nwant %s in it", got, want)
		}
	})
}

// mntr and envi report the counters and properties that a real server reports.
func TestMonitorAndEnvironment(t *testing.T) {
	withWords(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 0)
		r.create("/e", 1)
		r.addWatch("/e", persistentMode)
		time.Sleep(time.Second)
		mntr := word(t, s, "mntr")
		for _, line := range []string{
			"zk_version\t3.9.4-zksynctest, built on 08/19/2025 19:53 UTC", "zk_server_state\tstandalone", "zk_avg_latency\t0.0",
			"zk_ephemerals_count\t1", "zk_num_alive_connections\t2", "zk_znode_count\t6", "zk_global_sessions\t1",
			"zk_watch_count\t2", "zk_packets_received\t4", "zk_packets_sent\t3", "zk_approximate_data_size\t46", "zk_uptime\t1000",
		} {
			if !strings.Contains(mntr, line+"\n") {
				t.Errorf("mntr has no %q:\n%s", line, mntr)
			}
		}
		for line := range strings.Lines(mntr) {
			if !regexp.MustCompile(`^zk_[a-z_]+\t[^\t\n]+\n$`).MatchString(line) {
				t.Errorf("mntr: %q", line)
			}
		}
		// Parse envi like kazoo.
		envi := map[string]string{}
		for line := range strings.Lines(word(t, s, "envi")) {
			if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
				envi[key] = value
			}
		}
		if v := regexp.MustCompile(`^[\d.]*`).FindString(envi["zookeeper.version"]); v != "3.9.4" || envi["os.name"] == "" {
			t.Errorf("version %q, environment %v", v, envi)
		}
	})
}

// The server answers only the four-letter words of Config.FourLetterWords, by default only srvr.
func TestOnlyWhitelistedWordsAreAnswered(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		if got := word(t, s, "srvr"); !strings.HasPrefix(got, "Zookeeper version: ") {
			t.Errorf("srvr: %q", got)
		}
		for _, w := range []string{"ruok", "stat", "mntr", "stmk"} {
			if got := word(t, s, w); got != w+" is not executed because it is not in the whitelist.\n" {
				t.Errorf("%s: %q", w, got)
			}
		}
		if got := word(t, s, "what"); got != "" {
			t.Errorf("no such word: %q", got)
		}
	})
	bounds.Bubble(t, func(t *testing.T) {
		s := start(t, zkserver.Config{FourLetterWords: []string{}})
		if got := word(t, s, "srvr"); !strings.Contains(got, "whitelist") {
			t.Errorf("srvr: %q", got)
		}
	})
	if _, err := zkserver.New(zkserver.Config{FourLetterWords: []string{"ruok", "ruko"}}); err == nil ||
		!strings.HasPrefix(err.Error(), `zkserver: Config.FourLetterWords has "ruko": it must be "*" or one of conf, cons, crst,`) {
		t.Error(err)
	}
}

// A four-letter word is answered only as the first bytes of a connection.
func TestWordsAreForConnectionsWithoutASession(t *testing.T) {
	withWords(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 10*time.Second)
		r.write([]byte("ruok"))
		if got, err := io.ReadAll(r.nc); len(got) > 0 || err != nil { // the word was taken for the length of a frame
			t.Errorf("%q, %v", got, err)
		}
		s.Freeze()
		frozen := rawDial(t, s)
		frozen.write([]byte("ruok"))
		frozen.silent(time.Minute)
		s.Thaw()
		_ = frozen.nc.SetReadDeadline(time.Time{})
		if answer, err := io.ReadAll(io.LimitReader(frozen.nc, 4)); string(answer) != "imok" {
			t.Errorf("%q, %v", answer, err)
		}
		half := rawDial(t, s)
		half.write([]byte("stmk1234"))
		half.closed() // when the time for a handshake is over
		s.Partition(r.id)
		if got := word(t, s, "ruok"); got != "imok" {
			t.Errorf("%q", got)
		}
	})
}

// go-zookeeper's helpers get the answers to four-letter words over TCP, as a monitoring system does.
func TestWordsOfTheStockClient(t *testing.T) {
	s := start(t, zkserver.Config{FourLetterWords: []string{"srvr", "ruok", "cons"}})
	addr, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	servers := []string{addr.String()}
	session(t, s, 0).create("/a", 0)
	stats, ok := zk.FLWSrvr(servers, 10*time.Second)
	if !ok || stats[0].Error != nil || stats[0].Version != "3.9.4-zksynctest" || stats[0].NodeCount != 6 ||
		stats[0].Mode != zk.ModeStandalone || stats[0].Counter != 2 || stats[0].BuildTime.Year() != 2025 {
		t.Errorf("%+v, %v", stats[0], ok)
	}
	if ok := zk.FLWRuok(servers, 10*time.Second); !ok[0] {
		t.Error("it is not ok")
	}
	// FLWCons cannot parse the line about its own connection, which has no session, and returns an
	// error, with a real server too.
	clients, _ := zk.FLWCons(servers, 10*time.Second)
	if clients[0].Error != nil || len(clients[0].Clients) != 1 || clients[0].Clients[0].LastOperation != "CREA" {
		t.Errorf("%+v", clients[0])
	}
}
