package watch_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/watch"
	"github.com/go-zksync/toolkit/zksynctest"
)

// Few znodes that change all the time, so that events meet reads in every order.
func TestTreeUnderFire(t *testing.T) {
	srv := zksynctest.Start(t)
	must(t, srv.Create("/r", nil))
	m := srv.Connect(t)
	c := watch.Tree(t.Context(), m, "/r")
	s := live(t, srv.Connect(t))
	for round := range 40 {
		var wg sync.WaitGroup
		for writer := range 3 {
			rnd := rand.New(rand.NewPCG(uint64(round), uint64(writer)))
			wg.Go(func() {
				for i := range 60 {
					path := fmt.Sprintf("/r/%d", rnd.IntN(3))
					if rnd.IntN(2) == 0 {
						path += "/x"
					}
					var err error
					switch rnd.IntN(3) {
					case 0:
						_, err = s.Create(t.Context(), path, nil, 0)
					case 1:
						err = s.Delete(t.Context(), path, -1)
					default:
						_, err = s.Set(t.Context(), path, fmt.Append(nil, i), -1)
					}
					if err != nil && !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, zk.ErrNodeExists) && !errors.Is(err, zk.ErrNotEmpty) {
						t.Error(err)
					}
					if rnd.IntN(4) == 0 {
						runtime.Gosched()
					}
				}
			})
		}
		wg.Wait()
		mustMirror(t, c, s, "/r")
	}
}

// yield lets others go first, less than n times.
func yield(n int) {
	for range rand.IntN(n) {
		runtime.Gosched()
	}
}

// The root comes and goes while it is looked for, so that answers of before and
// after overtake each other on their way into the mirror.
func TestTreeOfARootThatComesAndGoes(t *testing.T) {
	srv := zksynctest.Start(t)
	must(t, srv.Create("/r", nil))
	m := srv.Connect(t)
	s := live(t, srv.Connect(t))
	for round := range 600 {
		root := fmt.Sprint("/r/", round)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			for life := range 1 + rand.IntN(3) {
				yield(60)
				child := fmt.Sprint(root, "/", life)
				err := errors.Join(srv.Create(root, nil), srv.Create(child, nil))
				if life < 2 && rand.IntN(2) == 0 {
					err = errors.Join(err, srv.Delete(child), srv.Delete(root))
				} else if err == nil {
					return
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
		var mirrors []*watch.Cache
		for range 8 {
			mirrors = append(mirrors, watch.Tree(ctx, m, root))
		}
		wg.Wait()
		for _, c := range mirrors {
			mustMirror(t, c, s, root)
		}
		cancel()
	}
}

// distant is a connection to a server that is 10 ms away.
type distant struct{ net.Conn }

func (d distant) Read(p []byte) (int, error) {
	time.Sleep(10 * time.Millisecond)
	return d.Conn.Read(p)
}

// Over a distance, a load takes as many round trips as there are windows full of
// requests, and not as there are requests.
func TestTreeLoadsWithRequestsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		root := "/r"
		paths := plant(t, live(t, srv.Connect(t)), root, 2000)
		m := srv.Connect(t, session.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := srv.Dial(ctx, network, address)
			return distant{c}, err
		}))
		took := load(t, m, root, len(paths))
		t.Logf("%d reads took %v", 2*len(paths), took)
		if took > time.Second {
			t.Errorf("%d reads took %v, one by one they would have taken %v", 2*len(paths), took, time.Duration(2*len(paths))*10*time.Millisecond)
		}
	})
}
