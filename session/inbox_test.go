package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// An Inbox delivers the answers and the events of the three kinds of reads, in
// the order of the connection, each event behind the answer that armed its watch.
func TestInboxDeliversInTheOrderOfTheConnection(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		create(t, s, "/n", 0)
		create(t, s, "/n/b", 0)
		create(t, s, "/n/a", 0)
		in := inbox(t, s)
		in.Data("/n", "data")
		in.Children("/n", "children")
		in.Exists("/new", "exists")
		in.Data("/none", "none")
		in.SyncQuorum("/", "sync")
		same(t, receive(t, in, 5), "answer data", "answer children",
			"exists: exists /new: zk: node does not exist", "none: get /none: zk: node does not exist", "answer sync")

		create(t, s, "/new", 0)
		if err := s.Delete(t.Context(), "/n/a", -1); err != nil {
			t.Fatal(err)
		}
		in.Post("mine")
		if _, err := s.Set(t.Context(), "/n", nil, -1); err != nil {
			t.Fatal(err)
		}
		in.Post("last")
		same(t, receive(t, in, 5), "EventNodeCreated exists", "EventNodeChildrenChanged children", "post mine", "EventNodeDataChanged data", "post last")
	})
}

// The data, names and Stats that an Inbox delivers are the data, names and Stats of the znode.
func TestInboxDecodesAnswers(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		if _, err := s.Create(t.Context(), "/n", []byte("x"), 0); err != nil {
			t.Fatal(err)
		}
		create(t, s, "/n/b", 0)
		create(t, s, "/n/a", 0)
		_, want, err := s.Exists(t.Context(), "/n")
		if err != nil {
			t.Fatal(err)
		}
		in := inbox(t, s)
		in.Data("/n", nil)
		in.Children("/n", nil)
		var answers []session.Delivery
		for len(answers) < 2 {
			batch, err := in.Receive(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range batch {
				if d.Kind == session.InboxAnswer {
					answers = append(answers, d)
				}
			}
		}
		data, stat, err := answers[0].Data()
		if string(data) != "x" || *stat != *want || err != nil {
			t.Errorf("Data: %q, %+v, %v", data, stat, err)
		}
		names, stat, err := answers[1].Names()
		if got := slices.Sorted(names); !slices.Equal(got, []string{"a", "b"}) || *stat != *want || err != nil {
			t.Errorf("Names: %v, %+v, %v", got, stat, err)
		}
		if _, _, err := answers[0].Names(); err == nil {
			t.Error("data decode as a list of children")
		}
	})
}

// On a new connection the events of the changes in between arrive before every answer, regardless of the number of
// requests that arm the watches again.
func TestInboxDeliversWhatWasMissedAheadOfAnswers(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		long := "/" + strings.Repeat("x", 20_000) // some 6 paths in a request
		in := inbox(t, s)
		const n = 40
		for i := range n {
			path := fmt.Sprint(long, i)
			if err := srv.Create(path, nil); err != nil {
				t.Fatal(err)
			}
			in.Data(path, i)
		}
		receive(t, in, n)
		srv.ResetOps()
		srv.HangHandshake(true)
		if err := srv.Disconnect(s.ID()); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			if err := srv.Set(fmt.Sprint(long, i), nil); err != nil {
				t.Fatal(err)
			}
		}
		in.Exists("/", "read")
		synctest.Wait()
		srv.HangHandshake(false)
		all := receive(t, in, n+1)
		if at := slices.Index(all, "answer read"); at != n {
			t.Errorf("an answer is delivered ahead of %d events of changes made before it", n-at)
		}
		if got := count(srv.Ops(), zkserver.OpSetWatches); got < 3 {
			t.Errorf("%d requests armed the watches again, want several", got)
		}
	})
}

// An Inbox repeats its reads over lost connections and refusals that are not final, with pauses that grow, and delivers
// one answer or final refusal for each.
func TestInboxRepeatsReads(t *testing.T) {
	for name, test := range map[string]struct {
		fault zkserver.Fault
		pause time.Duration // at least, until the answer
		want  string
	}{
		"connection lost before": {zkserver.Fault{At: zkserver.BeforeCommit, Do: zkserver.Disconnect}, 0, "answer it"},
		"answer lost":            {zkserver.Fault{At: zkserver.BeforeReply, Do: zkserver.Disconnect}, 0, "answer it"},
		"lost often":             {zkserver.Fault{At: zkserver.BeforeReply, Do: zkserver.Disconnect, Times: 8}, 500 * time.Millisecond, "answer it"},
		"throttled":              {zkserver.Fault{Do: zkserver.Error(-127), Times: 5}, 200 * time.Millisecond, "answer it"},
		"request timeout":        {zkserver.Fault{Do: zkserver.Error(-122)}, 10 * time.Millisecond, "answer it"},
		"may not be read":        {zkserver.Fault{Do: zkserver.Error(-102), Times: -1}, 0, "it: get /n: permission denied: the ACL of the znode /n on the servers (getAcl /n) does not give READ to this client, which is world:anyone"},
		"unknown":                {zkserver.Fault{Do: zkserver.Error(-4711), Times: 5}, 200 * time.Millisecond, "answer it"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				s := current(t, connect(t, srv, three))
				create(t, s, "/n", 0)
				test.fault.Op = zkserver.OpGetData
				inj := srv.Inject(test.fault)
				in := inbox(t, s)
				start := time.Now()
				in.Data("/n", "it")
				same(t, receive(t, in, 1), test.want)
				if took := time.Since(start); took < test.pause {
					t.Errorf("%d attempts took %v, want pauses that grow, %v at least", inj.Count(), took, test.pause)
				}
				if inj.Count() == 0 {
					t.Error("the fault has not struck")
				}
				inj.Remove()
				nothingArrives(t, in)
				if strings.HasPrefix(test.want, "answer") {
					if err := srv.Set("/n", nil); err != nil {
						t.Fatal(err)
					}
					same(t, receive(t, in, 1), "EventNodeDataChanged it")
				}
			})
		})
	}
}

// The watch of an Inbox for a creation survives a reconnect.
func TestInboxWatchesForACreationOverAReconnect(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		in := inbox(t, s)
		in.Exists("/n", "it")
		receive(t, in, 1)
		for range 2 {
			if err := srv.Disconnect(s.ID()); err != nil {
				t.Fatal(err)
			}
			nothingArrives(t, in)
		}
		if err := srv.Create("/n", nil); err != nil {
			t.Fatal(err)
		}
		same(t, receive(t, in, 1), "EventNodeCreated it")
	})
}

// An Inbox has at most 256 requests in flight, so that a long list of reads does not delay other requests.
func TestInboxWindow(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		in := inbox(t, s)
		for range 2000 {
			in.Exists("/", "it")
		}
		got := make(chan []string)
		srv.ResetOps()
		srv.Freeze()
		go func() { got <- receive(t, in, 2000) }()
		synctest.Wait()
		other := make(chan error)
		go func() {
			_, err := s.Set(t.Context(), "/", nil, -1)
			other <- err
		}()
		synctest.Wait()
		srv.Thaw()
		mustBe(t, <-other, nil)
		<-got
		before := 0
		for _, op := range srv.Ops() {
			if op.Code == zkserver.OpSetData {
				break
			}
			before++
		}
		if before > 256 {
			t.Errorf("%d requests of the Inbox are ahead of another", before)
		}
	})
}

// An owner that receives nothing from its Inbox delays neither other requests nor other watches of the session.
func TestInboxOfAnOwnerThatIsSlow(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		create(t, s, "/n", 0)
		in := inbox(t, s)
		for range 200 {
			in.Data("/n", "it")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		for {
			if _, err := in.Receive(ctx); err != nil {
				break
			}
		}
		within(t, time.Second, "another watch", func() {
			_, _, w, err := s.WatchData(t.Context(), "/n")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Set(t.Context(), "/n", nil, -1); err != nil {
				t.Fatal(err)
			}
			if ev := <-w.Events(); ev.Type != zk.EventNodeDataChanged {
				t.Errorf("event %+v", ev)
			}
		})
		if got := receive(t, in, 200); len(got) != 200 {
			t.Errorf("%d events", len(got))
		}
	})
}

// Receive ends with ctx, with the session and with the Manager, and returns the reason.
func TestInboxEnds(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three)
		s := current(t, m)
		why := errors.New("why")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(why) })
		in := inbox(t, s)
		for {
			if _, err := in.Receive(ctx); err != nil {
				mustBe(t, err, context.Canceled, why)
				break
			}
		}
		srv.ExpireSession(s.ID())
		for {
			if _, err := in.Receive(t.Context()); err != nil {
				mustBe(t, err, session.ErrLost)
				break
			}
		}
		in = inbox(t, current(t, m))
		go m.Close()
		for {
			if _, err := in.Receive(t.Context()); err != nil {
				mustBe(t, err, session.ErrClosed)
				break
			}
		}
	})
}

// An Inbox refuses an invalid path and sends nothing.
func TestInboxRefusesWhatCannotBeSent(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three, session.WithMaxRequest(1024)))
		in := inbox(t, s)
		in.Data("/a//b", "path")
		in.Data("/"+strings.Repeat("x", 2000), "size")
		got := receive(t, in, 2)
		for i, want := range []error{session.ErrInvalidPath, session.ErrTooLarge} {
			if !strings.Contains(got[i], want.Error()) {
				t.Errorf("delivered %q, want %v", got[i], want)
			}
		}
	})
}
