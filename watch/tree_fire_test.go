package watch_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/watch"
	"github.com/go-zksync/toolkit/zksynctest"
)

// A Cache equals the server's tree after many quick changes of few znodes, in any order of events and reads.
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

// mirrorsAmid has eight Caches begin while changes are made below their root, so that
// answers of before and after overtake each other on their way into the mirror, and
// checks that they come to equal the server's tree.
func mirrorsAmid(t *testing.T, m *session.Manager, s *session.Session, root string, changes func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := changes(); err != nil {
			t.Error(err)
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
}

// A Cache follows a root that is created and deleted while it is looked for.
func TestTreeOfARootThatComesAndGoes(t *testing.T) {
	srv := zksynctest.Start(t)
	must(t, srv.Create("/r", nil))
	m := srv.Connect(t)
	s := live(t, srv.Connect(t))
	for round := range 600 {
		root := fmt.Sprint("/r/", round)
		mirrorsAmid(t, m, s, root, func() (err error) {
			for life := range 1 + rand.IntN(3) {
				yield(60)
				child := fmt.Sprint(root, "/", life)
				err = errors.Join(err, srv.Create(root, nil), srv.Create(child, nil))
				if life == 2 || rand.IntN(2) == 0 {
					break
				}
				err = errors.Join(err, srv.Delete(child), srv.Delete(root))
			}
			return err
		})
	}
}

// A Cache shows a readable znode that replaces an unreadable znode.
func TestTreeOfWhatBecomesReadable(t *testing.T) {
	srv := zksynctest.Start(t)
	must(t, srv.Create("/r", nil))
	m := srv.Connect(t)
	s := live(t, srv.Connect(t))
	for round := range 300 {
		root := fmt.Sprint("/r/", round)
		secret := root + "/secret"
		must(t, srv.Create(root, nil))
		_, err := s.Create(t.Context(), secret, nil, 0, zk.DigestACL(zk.PermRead, "joe", "x")...)
		must(t, err)
		mirrorsAmid(t, m, s, root, func() error {
			yield(60)
			return errors.Join(srv.Delete(secret), srv.Create(secret, []byte("y")), srv.Create(secret+"/below", nil))
		})
	}
}

// A Cache reads with many requests in flight: a load takes as many round trips as windows of requests.
func TestTreeLoadsWithRequestsInFlight(t *testing.T) {
	bubbleWithWays(t, func(t *testing.T, srv *zksynctest.Server) {
		root := "/r"
		paths := plant(t, live(t, srv.Connect(t)), root, 2000)
		m := srv.Connect(t, far(srv, 5*time.Millisecond))
		took := load(t, m, root, len(paths))
		t.Logf("%d reads took %v", 2*len(paths), took)
		if took > time.Second {
			t.Errorf("%d reads took %v, one by one they would have taken %v", 2*len(paths), took, time.Duration(2*len(paths))*10*time.Millisecond)
		}
	})
}
