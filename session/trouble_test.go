package session_test

import (
	"context"
	"errors"
	"flag"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
)

var managers = flag.Int("managers", 50, "how many Managers TestManyManagersOnAServerInTrouble opens")

// A trouble is a state of a server in which no client can use the server.
type trouble struct {
	dial   func(*hostileServer) error // the error of every dial, before the server sees it
	grant  func(asked int64, timeout int32) (int64, int32)
	answer func(p *hostilePeer, xid, op int32, body []byte) bool
}

// The promises of docs/operating.md for each client with three addresses: connections in the worst second, and in
// each second after the first ten.
const (
	worstSecond = 20
	laterSecond = 2.5
)

// secondBurst bounds the connections of each client in each second after the first three. A session that is lost in the
// trouble is closed over connections with pauses of their own, and the next session goes on with the long pauses.
const secondBurst = 10

// serverTroubles are the states of a server that docs/operating.md lists.
var serverTroubles = map[string]trouble{
	"down":             {dial: func(*hostileServer) error { return errors.New("refused") }},
	"full":             {grant: func(int64, int32) (int64, int32) { return 0, 0 }},
	"silent":           {answer: func(*hostilePeer, int32, int32, []byte) bool { return true }},
	"throttled reads":  {answer: throttle(opGet)},
	"throttled":        {answer: throttle(opGet, opSync, opMulti)},
	"hangs up":         {answer: hangUpAt(opGet)},
	"hangs up at once": {answer: hangUpAt(opSync)},
	"grants 1 ms":      {grant: func(asked int64, _ int32) (int64, int32) { return 1 + asked, 1 }},
	"expires":          {grant: expired, answer: hangUpAt(opGet)},
	"floods": {answer: func(p *hostilePeer, xid, op int32, _ []byte) bool {
		p.plain(xid, op)
		p.reply(4711, 0)
		return true
	}},
}

func throttle(ops ...int32) func(*hostilePeer, int32, int32, []byte) bool {
	return func(p *hostilePeer, xid, op int32, _ []byte) bool {
		for _, o := range ops {
			if o == op {
				p.reply(xid, throttled)
				return true
			}
		}
		return false
	}
}

func hangUpAt(at int32) func(*hostilePeer, int32, int32, []byte) bool {
	return func(p *hostilePeer, _, op int32, _ []byte) bool {
		if op == at {
			p.hangUp()
		}
		return op == at
	}
}

// expired gives a new session to a client without one, and refuses all others.
func expired(asked int64, timeout int32) (int64, int32) {
	if asked == 0 {
		return 4711, timeout
	}
	return 0, 0
}

// For any number of clients of a server in trouble, each client opens no more connections and makes no more requests
// than docs/operating.md promises, and the callers are served within two seconds after the trouble. To see this test
// fail, remove the limit of any pause, or the last line of attempts.goOn.
func TestManyManagersOnAServerInTrouble(t *testing.T) {
	for name, tr := range serverTroubles {
		t.Run(name, func(t *testing.T) {
			bounds.Bubble(t, func(t *testing.T) { inTrouble(t, tr) })
		})
	}
}

func inTrouble(t *testing.T, tr trouble) {
	const lasts, settles = 25, 10 // seconds
	h := &hostileServer{}
	var mu sync.Mutex
	var dialError error
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		mu.Lock()
		err := dialError
		mu.Unlock()
		if err != nil {
			h.note(&h.dials)
			return nil, err
		}
		return h.dial(ctx, network, address)
	}
	all := make([]*session.Manager, *managers)
	for i := range all {
		m, err := session.Connect(t.Context(), three, session.WithDialer(dial))
		if err != nil {
			t.Fatal(err)
		}
		all[i] = m
	}
	ctx, stop := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	served := make([]time.Time, len(all))
	for i, m := range all {
		callers.Go(func() {
			for ctx.Err() == nil {
				err := m.Do(ctx, func(ctx context.Context, s *session.Session) error { _, _, err := s.Get(ctx, "/"); return err })
				if err == nil {
					mu.Lock()
					served[i] = time.Now()
					mu.Unlock()
				}
				select {
				case <-time.After(time.Second):
				case <-ctx.Done():
				}
			}
		})
	}
	time.Sleep(20 * time.Second)

	began := time.Now()
	h.mu.Lock()
	h.grant, h.answer = tr.grant, tr.answer
	h.mu.Unlock()
	if tr.dial != nil {
		mu.Lock()
		dialError = tr.dial(h)
		mu.Unlock()
	}
	h.hangUpAll()
	time.Sleep(lasts * time.Second)
	h.mu.Lock()
	h.grant, h.answer = nil, nil
	conns, asked := perSecond(h.dials, began, lasts), perSecond(h.asked, began, lasts)
	h.mu.Unlock()
	mu.Lock()
	dialError = nil
	mu.Unlock()
	over := time.Now()
	time.Sleep(10 * time.Second)
	stop()
	callers.Wait()
	for i, at := range served {
		if at.Before(over) {
			t.Errorf("client %d is not served any more: %v", i, at.Sub(over))
		}
	}
	for _, m := range all {
		m.Close()
	}

	n := float64(len(all))
	worst, steady := rates(conns, settles, n)
	worstAsked, steadyAsked := rates(asked, settles, n)
	if worst > worstSecond || worstAsked > worstSecond+5 || steady > laterSecond || steadyAsked > laterSecond+1 {
		t.Errorf("%.1f connections and %.1f requests in the worst second, want %d at most; %.2f and %.2f later, want %v and %v at most",
			worst, worstAsked, worstSecond, steady, steadyAsked, laterSecond, laterSecond+1)
	}
	if again, _ := rates(conns[3:], 0, n); again > secondBurst {
		t.Errorf("%.1f connections in a second after the first three, want %d at most: %v", again, secondBurst, conns)
	}
	t.Logf("for each client: %.1f connections in the worst second, %.2f in a second later; %.1f requests and %.2f", worst, steady, worstAsked, steadyAsked)
}

// perSecond counts times in each second from began on.
func perSecond(times []time.Time, began time.Time, seconds int) []int {
	counts := make([]int, seconds)
	for _, at := range times {
		if i := int(at.Sub(began) / time.Second); !at.Before(began) && i < seconds {
			counts[i]++
		}
	}
	return counts
}

// rates returns, for each of n clients, the greatest count, and the mean of the counts after the first skip counts.
func rates(counts []int, skip int, n float64) (worst, steady float64) {
	sum := 0
	for i, c := range counts {
		worst = max(worst, float64(c)/n)
		if i >= skip {
			sum += c
		}
	}
	return worst, float64(sum) / float64(len(counts)-skip) / n
}
