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

func (c *tally) names() []string { return slices.Sorted(maps.Keys(c.n)) }

// between waits for a time between low and high, and says whether ctx lives.
func between(ctx context.Context, r *rand.Rand, low, high time.Duration) bool {
	pause(ctx, low+time.Duration(r.Int64N(int64(high-low))))
	return ctx.Err() == nil
}

// hurtServers kills and pauses servers and cuts links between them, up to two at
// a time, and lets the ensemble become whole again after each. Without that,
// ZooKeeper 3.8.0 itself forgets transactions that it has acknowledged, when a
// second fault hits a server in the middle of catching up (ZOOKEEPER-4643 and its
// kin), and nothing that a client does can make up for it.
func hurtServers(ctx context.Context, r *rand.Rand, e *zksynctest.Ensemble, c *tally) {
	for between(ctx, r, 100*time.Millisecond, 3*time.Second) {
		i := 1 + r.IntN(servers)
		j, k := i%servers+1, (i+1)%servers+1
		switch r.IntN(8) {
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
				e.WaitReady()
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
		}
		e.WaitReady()
	}
}

// hurtLinks cuts and slows the links to clients, and heals them.
func hurtLinks(ctx context.Context, r *rand.Rand, e *zksynctest.Ensemble, c *tally) {
	for between(ctx, r, 500*time.Millisecond, 4*time.Second) {
		i := 1 + r.IntN(servers)
		switch r.IntN(3) {
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
		}
	}
}

// hurtClients kills, pauses and replaces clients, and floods the servers with
// connections that say nothing.
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

// flood opens connections, some of which say half of a word, and closes them.
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
