package zkserver_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// strike applies a random fault to an ensemble.
func strike(s *zkserver.Server, rnd *rand.Rand) {
	e := s.Endpoint(1 + rnd.IntN(s.Size()))
	other := s.Endpoint(1 + (e.Number()+rnd.IntN(s.Size()-1))%s.Size())
	switch rnd.IntN(26) {
	case 0, 1:
		e.Stop()
	case 2, 3:
		_ = e.Start()
	case 4:
		_ = e.Restart()
	case 5:
		e.Freeze()
	case 6, 7:
		e.Thaw()
	case 8:
		e.Lag()
	case 9:
		e.CatchUp()
	case 10:
		e.CutFromLeader()
	case 11:
		e.Rejoin()
	case 12:
		s.CutLink(e.Number(), other.Number())
	case 13:
		if rnd.IntN(2) == 0 {
			e.CutFromClients()
		} else {
			e.HealClients()
		}
	case 14, 15:
		s.Depose()
	case 16:
		s.ResetEnd(e.Number(), other.Number())
	case 17:
		s.SetThawOrder(zkserver.ThawOrder(rnd.IntN(4)))
	case 18:
		for _, session := range s.Sessions() {
			s.LoseTouches(session.ID, rnd.IntN(2) == 0)
		}
	case 19:
		_ = e.SetSessionTimeouts(time.Second, time.Duration(2+rnd.IntN(20))*time.Second)
	case 20:
		ops := []zkserver.OpCode{0, zkserver.OpConnect, zkserver.OpSetData, zkserver.OpCloseSession}
		s.Inject(zkserver.Fault{Endpoint: e.Number(), Op: ops[rnd.IntN(len(ops))], Do: zkserver.CutAfterForward})
	default:
		e.Lag()
	}
}

func mend(t *testing.T, s *zkserver.Server) {
	t.Helper()
	s.RemoveFaults()
	for _, session := range s.Sessions() {
		s.LoseTouches(session.ID, false)
	}
	for i := 1; i <= s.Size(); i++ {
		e := s.Endpoint(i)
		e.Thaw()
		e.Rejoin()
		e.HealClients()
		for j := i + 1; j <= s.Size(); j++ {
			s.HealLink(i, j)
		}
		if err := e.Start(); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
}

// Under random faults an ensemble loses no write that was answered and shows no client an older
// version.
func TestEnsembleUnderTorment(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			cfg := zkserver.Config{
				TickTime:     time.Second,
				ElectionTime: time.Duration(seed%3) * 100 * time.Millisecond,
				ReadOnlyMode: seed%2 == 0,
			}
			ensemble(t, []int{3, 5}[seed%2], cfg, func(t *testing.T, s *zkserver.Server) { tormentEnsemble(t, s, seed) })
		})
	}
}

func tormentEnsemble(t *testing.T, s *zkserver.Server, seed uint64) {
	if err := s.Create("/count", nil); err != nil {
		t.Fatal(err)
	}
	var addrs []string
	for i := 1; i <= s.Size(); i++ {
		addrs = append(addrs, s.Endpoint(i).Addr())
	}
	stop := make(chan struct{})
	var clients sync.WaitGroup
	answered := make([]int, 4)
	for i := range answered {
		conn, events, err := zk.Connect(addrs, 8*time.Second, zk.WithLogger(quiet{}),
			zk.WithDialer(func(network, address string, _ time.Duration) (net.Conn, error) {
				return s.Dial(context.Background(), network, address)
			}))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for range events {
			}
		}()
		clients.Go(func() {
			defer conn.Close()
			answered[i] = count(t, conn, stop, rand.New(rand.NewPCG(seed, uint64(i))))
		})
	}
	rnd := rand.New(rand.NewPCG(seed, 99))
	zxid := s.Zxid()
	for range 300 {
		strike(s, rnd)
		if wrong := s.Inconsistencies(); wrong != nil {
			t.Fatal(wrong)
		}
		time.Sleep(time.Duration(rnd.IntN(3000)) * time.Millisecond)
		if now := s.Zxid(); now < zxid {
			t.Errorf("zxid %#x after %#x", now, zxid)
		} else {
			zxid = now
		}
	}
	mend(t, s)
	time.Sleep(30 * time.Second) // so that the clients can reconnect
	close(stop)
	clients.Wait()
	total := 0
	for _, n := range answered {
		total += n
	}
	_, there := s.Get("/count")
	r := at(t, s, 1, 8*time.Second)
	if version := r.stat("/count").version; !there || int(version) < total || total == 0 {
		t.Errorf("version %d, but %d writes were answered", version, total)
	}
	if n := len(slices.DeleteFunc(s.Sessions(), func(i zkserver.SessionInfo) bool { return i.ID == r.id })); n > len(answered) {
		t.Errorf("%d sessions of %d clients", n, len(answered))
	}
}

// count writes and reads until stop, and returns the number of answered writes.
func count(t *testing.T, conn *zk.Conn, stop <-chan struct{}, rnd *rand.Rand) (answered int) {
	seen := int32(-1)
	for {
		select {
		case <-stop:
			return answered
		case <-time.After(time.Duration(rnd.IntN(2000)) * time.Millisecond):
		}
		var stat *zk.Stat
		var err error
		write := rnd.IntN(8) == 0
		if write {
			stat, err = conn.Set("/count", nil, -1)
		} else {
			_, stat, err = conn.Exists("/count")
		}
		switch {
		case err == nil && stat.Version < seen:
			t.Errorf("version %d after %d", stat.Version, seen)
		case err == nil:
			seen = stat.Version
			if write {
				answered++
			}
		case errors.Is(err, zk.ErrSessionExpired) || errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, zk.ErrNoServer) ||
			errors.Is(err, syscall.EPIPE): // go-zookeeper reports a lost connection in all these ways
		default:
			t.Errorf("%v", err)
		}
	}
}
