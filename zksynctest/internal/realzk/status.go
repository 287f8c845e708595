package realzk

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// settled is the time for which an ensemble must serve before it counts as ready: members that have
// just lost each other need a moment to notice.
const settled = 200 * time.Millisecond

// Statuses asks all servers at once. A server that is not meant to run, is paused, or
// does not answer has an empty status.
func (c *Cluster) Statuses(ctx context.Context) []Status {
	ctx, stop := c.bound(ctx)
	defer stop()
	statuses := make([]Status, len(c.servers))
	var wg sync.WaitGroup
	for i, s := range c.servers {
		if !s.active() {
			continue
		}
		wg.Go(func() {
			if status, err := askStatus(ctx, s.addr()); err == nil {
				statuses[i] = status
			}
		})
	}
	wg.Wait()
	return statuses
}

// Leader returns the number of the server that leads, 0 if none does. If two servers
// claim to lead, for example because the old leader is cut off and has not noticed
// yet, Leader returns the server of the later epoch. A single server leads.
func (c *Cluster) Leader(ctx context.Context) int {
	return leaderOf(c.Statuses(ctx))
}

func leaderOf(statuses []Status) int {
	leader := 0
	for i, status := range statuses {
		if status.Mode != ModeLeader && status.Mode != ModeStandalone {
			continue
		}
		if leader == 0 || status.Zxid>>32 > statuses[leader-1].Zxid>>32 {
			leader = i + 1
		}
	}
	return leader
}

// Followers returns the numbers of the servers that follow, in order.
func (c *Cluster) Followers(ctx context.Context) []int {
	var followers []int
	for i, status := range c.Statuses(ctx) {
		if status.Mode == ModeFollower {
			followers = append(followers, i+1)
		}
	}
	return followers
}

// WaitLeader waits for a leader whose number is not in not.
func (c *Cluster) WaitLeader(ctx context.Context, not ...int) (int, error) {
	ctx, stop := c.bound(ctx)
	defer stop()
	var leader int
	err := poll(ctx, "a leader", func(ctx context.Context) (bool, error) {
		statuses := c.Statuses(ctx)
		for _, i := range not {
			if i >= 1 && i <= len(statuses) {
				statuses[i-1] = Status{}
			}
		}
		leader = leaderOf(statuses)
		return leader != 0, nil
	})
	if err != nil && len(not) > 0 {
		err = fmt.Errorf("%w (other than %v)", err, not)
	}
	return leader, err
}

// WaitReady waits until all servers that are meant to run serve for a moment: one leads, and the
// others follow.
func (c *Cluster) WaitReady(ctx context.Context) error {
	ctx, stop := c.bound(ctx)
	defer stop()
	var since time.Time
	var statuses []Status
	err := poll(ctx, "the ensemble to be whole", func(ctx context.Context) (bool, error) {
		statuses = c.Statuses(ctx)
		if !c.whole(ctx, statuses) {
			since = time.Time{}
			return false, nil
		}
		if len(c.servers) == 1 {
			return true, nil
		}
		if since.IsZero() {
			since = time.Now()
		}
		return time.Since(since) >= settled, nil
	})
	if err != nil {
		modes := make([]string, len(statuses))
		for i, status := range statuses {
			modes[i] = fmt.Sprintf("server %d: %q", i+1, status.Mode)
		}
		return fmt.Errorf("%w (%s)", err, strings.Join(modes, ", "))
	}
	return nil
}

func (c *Cluster) whole(ctx context.Context, statuses []Status) bool {
	running, leaders, followers := 0, 0, 0
	for i, s := range c.servers {
		if s.active() {
			running++
		}
		switch statuses[i].Mode {
		case ModeLeader, ModeStandalone:
			leaders++
		case ModeFollower:
			followers++
		}
	}
	if leaders != 1 || leaders+followers != running {
		return false
	}
	if followers == 0 {
		return true
	}
	// Only the leader knows whether its followers are in step.
	answer, err := Ask(ctx, c.servers[leaderOf(statuses)-1].addr(), "mntr")
	return err == nil && syncedFollowers(answer) == followers
}

// syncedFollowers returns the number of synced followers in an answer to mntr, or -1.
func syncedFollowers(answer string) int {
	if n, ok := Metric(answer, "zk_synced_followers"); ok {
		return n
	}
	return -1
}
