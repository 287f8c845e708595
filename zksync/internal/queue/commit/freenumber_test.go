package commit

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// FreeNumber waits for the message that has the next number, also when the server's count of changes has wrapped.
func TestFreeNumberWaitsForTheMessageInTheWay(t *testing.T) {
	for _, n := range []int32{5, 1<<30 + 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			committing(t, func(t *testing.T, srv *zksynctest.Server, _ *Committer, s *session.Session) {
				must(t, srv.Create("/q", nil))
				must(t, srv.SetNextSequence("/q", n))
				foreign := fmt.Sprintf("/q/qn-%010d", n+1) // its creation counts, too
				must(t, srv.Create(foreign, nil))
				done := make(chan error, 1)
				go func() {
					done <- FreeNumber(t.Context(), s, "/q", func(name string) (int32, bool) {
						digits, ok := strings.CutPrefix(name, "qn-")
						seq, err := strconv.ParseInt(digits, 10, 32)
						return int32(seq), ok && err == nil
					})
				}()
				synctest.Wait()
				select {
				case err := <-done:
					t.Fatalf("FreeNumber has returned beside %s: %v", foreign, err)
				default:
				}
				must(t, srv.Delete(foreign))
				must(t, <-done)
			})
		})
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// freeBesideMarkers calls FreeNumber for a directory with a spent counter and n markers, in requests of 1,024 bytes, and
// checks whether the directory stays. If foreign is set, another program has a znode below the first marker.
func freeBesideMarkers(t *testing.T, n int, foreign, stays bool) {
	committing(t, func(t *testing.T, srv *zksynctest.Server, _ *Committer, s *session.Session) {
		must(t, srv.Create("/q", nil))
		must(t, srv.Create("/q/"+MarkersDir, nil))
		for i := range n {
			must(t, srv.Create(fmt.Sprintf("/q/%s/%02d", MarkersDir, i), nil))
		}
		if foreign {
			must(t, srv.Create(fmt.Sprintf("/q/%s/00/foreign", MarkersDir), nil))
		}
		must(t, srv.SetNextSequence("/q", 1<<31-1))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		must(t, FreeNumber(ctx, s, "/q", func(string) (int32, bool) { return 0, false }))
		if _, ok := srv.Get("/q"); ok != stays {
			t.Errorf("the directory exists: %v, want %v", ok, stays)
		}
	}, session.WithMaxRequest(1024))
}

// FreeNumber deletes a directory whose counter is spent, although the markers in it do not fit into one request.
func TestFreeNumberBesideManyMarkers(t *testing.T) { freeBesideMarkers(t, 50, false, false) }

// A znode of another program below a marker keeps the directory, whatever the number of markers, and FreeNumber returns.
func TestFreeNumberBesideAZnodeBelowAMarker(t *testing.T) {
	for _, n := range []int{5, 50} {
		freeBesideMarkers(t, n, true, true)
	}
}

// A Put whose own marker has gone, because the markers beside a spent counter did not fit into one request, does not need it
// for its outcome: the message is put once although the next request is lost (freeing.deleteSome: the line that sets gone).
func TestPutAfterItsOwnMarkerWasFreed(t *testing.T) {
	for _, at := range []zksynctest.Moment{zksynctest.BeforeCommit, zksynctest.BeforeReply} {
		committing(t, func(t *testing.T, srv *zksynctest.Server, other *Committer, s *session.Session) {
			must(t, srv.Create("/q", nil))
			must(t, srv.Create("/q/"+MarkersDir, nil))
			c := New(other.m, "/q/"+MarkersDir, new(atomic.Bool))
			defer c.Close(t.Context(), errors.New("closed"))
			c.NumberOf = func(name string) (int32, bool) { return 1<<31 - 1, strings.HasPrefix(name, "qn-") }
			must(t, c.do(t.Context(), creates("/q/qn-2147483647")))
			must(t, srv.SetNextSequence("/q", 1<<31-1))
			// Behind the marker of c, in order, so that the directory stays only after some markers have gone.
			for i := range 50 {
				must(t, srv.Create(fmt.Sprintf("/q/%s/marker-%02d", MarkersDir, i), nil))
			}
			must(t, srv.Create(fmt.Sprintf("/q/%s/marker-49/foreign", MarkersDir), nil))
			put, err := c.NewCreate("/q", "qn-", nil)
			must(t, err)
			e := c.Start(put)[0]
			synctest.Wait()
			srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Path: "/q/qn-", At: at, Do: zksynctest.Disconnect})
			must(t, srv.Delete("/q/qn-2147483647"))
			if err := e.Wait(t.Context()); err != nil {
				t.Errorf("lost %v: %v, want nil", at, err)
			}
			mustExist(t, srv, true, "/q/qn-2147483647")
		}, session.WithMaxRequest(1024))
	}
}
