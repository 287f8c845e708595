//go:build unix

package chaos

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/internal/realzk"
)

const servers = 3

// tally counts faults by name.
type tally struct {
	t  *testing.T
	mu sync.Mutex
	n  map[string]int
}

func (c *tally) add(name string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n[name]++
	c.t.Logf("%s  %s %v", time.Now().UTC().Format("04:05.000"), name, args)
}

func (c *tally) count(name string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n[name] += n
}

func (c *tally) names() []string { return slices.Sorted(maps.Keys(c.n)) }

// between waits for a random time between low and high, and reports whether ctx is still alive.
func between(ctx context.Context, r *rand.Rand, low, high time.Duration) bool {
	pause(ctx, low+time.Duration(r.Int64N(int64(high-low))))
	return ctx.Err() == nil
}

// recovering makes servers write a snapshot after some hundred transactions instead of a hundred
// thousand, and send a copy of their memory to other servers instead of parts of their log; see
// recovered.
var recovering = []zksynctest.RealOption{
	throttling,
	zksynctest.RealProperty("snapCount", "600"),
	zksynctest.RealProperty("snapshotSizeFactor", "-1"),
}

// recovered waits until all servers serve, and the disk of each server has the same transactions as
// its memory.
//
// Without the first condition, ZooKeeper 3.8.0 forgets acknowledged transactions when a second
// fault hits a server that is catching up (ZOOKEEPER-4643).
//
// Without the second condition, it forgets acknowledged transactions later. In a follower that
// loses its leader, the thread that writes the log ends with transactions in its queue, or
// continues beside its successor (ZOOKEEPER-4541, ZOOKEEPER-4712): these transactions are missing
// from the log, or in it twice. The server's memory is right, and it serves and catches up from its
// memory, but its disk is wrong, and the server reads the disk after it was killed. A snapshot of
// the memory repairs the disk. No client can prevent this loss.
func recovered(ctx context.Context, e *zksynctest.Ensemble) {
	e.WaitReady()
	written := make([]int, servers)
	for i := range servers {
		written[i] = snapshots(ctx, e.DirectAddr(i+1))
	}
	for i := range servers {
		// The first new snapshot may have begun before the call.
		for ctx.Err() == nil && snapshots(ctx, e.DirectAddr(i+1)) < written[i]+2 {
			pause(ctx, 50*time.Millisecond)
		}
	}
}

// snapshots returns the number of snapshots that a server has written since its start. It waits for
// an answer until ctx ends.
func snapshots(ctx context.Context, address string) int {
	for ctx.Err() == nil {
		answer, _ := realzk.Ask(ctx, address, "mntr")
		if n, ok := realzk.Metric(answer, "zk_cnt_snapshottime"); ok {
			return n
		}
		pause(ctx, 50*time.Millisecond)
	}
	return 0
}

// hurtServers kills and pauses servers and cuts links between them, up to two at a time, and lets
// the ensemble recover from each fault.
func hurtServers(ctx context.Context, r *rand.Rand, e *zksynctest.Ensemble, c *tally) {
	for between(ctx, r, 100*time.Millisecond, 3*time.Second) {
		i := 1 + r.IntN(servers)
		j, k := i%servers+1, (i+1)%servers+1
		switch r.IntN(10) {
		case 0:
			c.add("server killed", i)
			e.Kill(i)
			between(ctx, r, 100*time.Millisecond, 4*time.Second)
			e.Start(i)
		case 1:
			c.add("server paused", i)
			e.Pause(i)
			between(ctx, r, 500*time.Millisecond, 7*time.Second)
			e.Resume(i)
		case 2:
			leader := e.Leader()
			if leader == 0 {
				continue
			}
			c.add("leader killed", leader)
			e.Kill(leader)
			between(ctx, r, 100*time.Millisecond, 4*time.Second)
			e.Start(leader)
		case 3:
			c.add("rolling restart")
			for i := range servers {
				e.Restart(i + 1)
				recovered(ctx, e)
				between(ctx, r, 100*time.Millisecond, time.Second)
			}
		case 4: // no quorum
			c.add("two servers killed", i, j)
			e.Kill(i)
			e.Kill(j)
			between(ctx, r, 500*time.Millisecond, 4*time.Second)
			e.Start(i)
			e.Start(j)
		case 5:
			c.add("server cut off from both others", i)
			e.Cut(i, j)
			e.Cut(i, k)
			between(ctx, r, time.Second, 8*time.Second)
			e.Heal(i, j)
			e.Heal(i, k)
		case 6:
			c.add("servers cut off from each other", i, j)
			e.Cut(i, j)
			between(ctx, r, time.Second, 6*time.Second)
			e.Heal(i, j)
		case 7:
			c.add("slow link between servers", i, j)
			e.Delay(i, j, time.Duration(10+r.IntN(200))*time.Millisecond)
			between(ctx, r, time.Second, 5*time.Second)
			e.Delay(i, j, 0)
		case 8:
			leader := e.Depose()
			c.add("leader deposed by resets", leader)
			between(ctx, r, time.Second, 12*time.Second)
			reunite(e, leader)
		case 9:
			leader := e.Leader()
			if leader == 0 {
				continue
			}
			c.add("leader deposed by restarts", leader)
			restartBehind(e, leader)
			between(ctx, r, time.Second, 12*time.Second)
			reunite(e, leader)
		}
		recovered(ctx, e)
	}
}

// others returns all servers except one.
func others(but int) (all []int) {
	for i := 1; i <= servers; i++ {
		if i != but {
			all = append(all, i)
		}
	}
	return all
}

// restartBehind cuts the leader off from the other servers, and restarts these servers, so that
// they elect another leader. The old leader does not notice, and still answers.
func restartBehind(e *zksynctest.Ensemble, leader int) {
	for _, i := range others(leader) {
		e.Cut(leader, i)
	}
	for _, i := range others(leader) {
		e.Kill(i)
	}
	for _, i := range others(leader) {
		e.Start(i)
	}
}

// reunite heals the links of a leader that was deposed.
func reunite(e *zksynctest.Ensemble, leader int) {
	for _, i := range others(leader) {
		e.Heal(leader, i)
	}
}

// hurtLinks cuts, slows and heals the links to clients.
func hurtLinks(ctx context.Context, r *rand.Rand, e *zksynctest.Ensemble, c *tally) {
	for between(ctx, r, 500*time.Millisecond, 4*time.Second) {
		i := 1 + r.IntN(servers)
		switch r.IntN(4) {
		case 0:
			c.add("server cut off from clients", i)
			e.Cut(i, zksynctest.Client)
			between(ctx, r, 500*time.Millisecond, 8*time.Second)
			e.Heal(i, zksynctest.Client)
		case 1:
			c.add("slow link to clients", i)
			e.Delay(i, zksynctest.Client, time.Duration(10+r.IntN(200))*time.Millisecond)
			between(ctx, r, time.Second, 5*time.Second)
			e.Delay(i, zksynctest.Client, 0)
		case 2:
			c.add("connections reset", i)
			e.Reset(i, zksynctest.Client)
		case 3:
			before := throttled(ctx, e.DirectAddr(i))
			overload(ctx, e.DirectAddr(i), 200*time.Millisecond+time.Duration(r.Int64N(int64(2*time.Second))))
			c.add("overload", i)
			c.count("requests that an overloaded server refused", max(0, throttled(ctx, e.DirectAddr(i))-before))
		}
	}
}

// hurtClients kills, pauses and replaces clients, and floods the servers with silent connections.
func hurtClients(ctx context.Context, r *rand.Rand, e *zksynctest.Ensemble, crew *crew, c *tally) {
	for between(ctx, r, 300*time.Millisecond, 3*time.Second) {
		i := r.IntN(len(crew.now))
		switch r.IntN(5) {
		case 0, 1:
			c.add("client killed", i)
			crew.kill(i)
			between(ctx, r, 0+1, 3*time.Second)
			crew.start(i)
		case 2, 3:
			c.add("client paused", i)
			crew.pause(i)
			between(ctx, r, 200*time.Millisecond, 9*time.Second)
			crew.resume(i)
		case 4:
			c.add("connection flood")
			flood(ctx, e.Addr(1+r.IntN(servers)), r)
		}
	}
}

// flood opens connections, sends half of a four-letter word on some of them, and closes them.
func flood(ctx context.Context, address string, r *rand.Rand) {
	var conns []net.Conn
	for range 200 {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", address)
		if err != nil {
			break
		}
		conns = append(conns, conn)
		if r.IntN(2) == 0 {
			fmt.Fprintf(conn, "\x00\x00")
		}
	}
	between(ctx, r, 100*time.Millisecond, 2*time.Second)
	for _, conn := range conns {
		conn.Close()
	}
}
