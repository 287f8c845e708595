package watch_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/watch"
	"github.com/go-zksync/toolkit/zksynctest"
)

// A forest changes a subtree at random, and knows which znodes it has.
type forest struct {
	root  string
	rnd   *rand.Rand
	paths []string
}

// change makes up a change: sets mostly, and creates and deletes of leaves.
func (f *forest) change(i int) any {
	data := fmt.Append(nil, i)
	if len(f.paths) == 0 {
		f.paths = append(f.paths, f.root)
		return &zk.CreateRequest{Path: f.root, Data: data}
	}
	at := f.rnd.IntN(len(f.paths))
	path := f.paths[at]
	leaf := !slices.ContainsFunc(f.paths, func(p string) bool { return strings.HasPrefix(p, path+"/") })
	switch p := f.rnd.IntN(10); {
	case p < 3 && len(f.paths) < 60 && strings.Count(path, "/") < 6:
		// Few names, so that znodes are made again.
		child := fmt.Sprintf("%s/%d", path, f.rnd.IntN(4))
		if !slices.Contains(f.paths, child) {
			f.paths = append(f.paths, child)
			return &zk.CreateRequest{Path: child, Data: data}
		}
	case p < 7 && leaf:
		f.paths = slices.Delete(f.paths, at, at+1)
		return &zk.DeleteRequest{Path: path, Version: -1}
	}
	return &zk.SetDataRequest{Path: path, Data: data, Version: -1}
}

// A Cache comes to equal the server's tree after any outage, and its events applied in order always give a tree.
func TestTreeInAStorm(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("zkserver", seed), func(t *testing.T) {
			bounds.Bubble(t, func(t *testing.T) {
				srv := zksynctest.Start(t)
				writer, reader := srv.Connect(t), srv.Connect(t)
				s := live(t, writer)
				f := &forest{root: "/r", rnd: rand.New(rand.NewPCG(seed, 0))}
				c := watch.Tree(t.Context(), reader, "/r")
				r := newReplica()
				ctx, cancel := context.WithCancel(t.Context())
				read := make(chan struct{})
				go func() {
					defer close(read)
					rnd := rand.New(rand.NewPCG(seed, 1))
					for {
						select {
						case ev, open := <-c.Events():
							if !open {
								return // the test has failed, and its ctx has ended
							}
							r.apply(t, "/r", ev)
							time.Sleep(upTo(rnd, 200*time.Millisecond))
						case <-ctx.Done():
							return
						}
					}
				}()
				for i := range 3000 {
					_, err := s.Multi(t.Context(), f.change(i))
					must(t, err)
					if f.rnd.IntN(3) == 0 {
						time.Sleep(upTo(f.rnd, 50*time.Millisecond))
					}
					if i%50 != 0 {
						continue
					}
					victim, err := reader.Session(t.Context())
					must(t, err)
					switch f.rnd.IntN(4) {
					case 0:
						srv.ExpireSession(victim.ID()) // it may be over
					case 1:
						srv.Lag(victim.ID())
					case 2:
						srv.HangHandshake(true)
						srv.Disconnect(victim.ID())
						time.AfterFunc(upTo(f.rnd, 5*time.Second), func() { srv.HangHandshake(false) })
					default:
						srv.Disconnect(victim.ID())
					}
					if i%500 == 0 {
						mustMirror(t, c, s, "/r")
					}
				}
				mustMirror(t, c, s, "/r")
				time.Sleep(time.Hour)
				mustMirror(t, c, s, "/r")
				cancel()
				<-read
				r.drain(t, "/r", c)
				if got, want := r.data(), tree(t, s, "/r"); !maps.Equal(got, want) {
					t.Errorf("who has applied all events has\n%s", difference(got, want))
				}
			})
		})
	}
	t.Run("ZooKeeper", func(t *testing.T) {
		onReal(t, func(t *testing.T, srv servers.Server) {
			reader := srv.Connect(t, session.WithTimeout(4*time.Second))
			s := live(t, zksynctest.RealShared(t).Connect(t))
			root := servers.Path(t)
			f := &forest{root: root, rnd: rand.New(rand.NewPCG(5, 0))}
			c := watch.Tree(t.Context(), reader, root)
			for i := 0; i < bounds.Size(1500, 3000); {
				var ops []any
				for range 1 + f.rnd.IntN(10) {
					ops = append(ops, f.change(i))
					i++
				}
				_, err := s.Multi(t.Context(), ops...)
				must(t, err)
				if i%100 >= 10 {
					continue
				}
				victim, err := reader.Session(t.Context())
				must(t, err)
				if f.rnd.IntN(3) == 0 {
					srv.Expire(t, victim.ID())
				} else {
					srv.Disconnect(t, victim.ID())
				}
			}
			mustMirror(t, c, s, root)
		})
	})
}
