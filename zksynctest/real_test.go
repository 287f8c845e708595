package zksynctest

import (
	"testing"
	"time"
)

func TestRealSingle(t *testing.T) {
	start := time.Now()
	e := RealZooKeeper(t, 1)
	t.Logf("served after %v", time.Since(start))
	if leader := e.Leader(); leader != 1 {
		t.Fatalf("Leader() = %d", leader)
	}
	start = time.Now()
	e.Restart(1)
	t.Logf("restarted in %v", time.Since(start))
}

func TestRealThree(t *testing.T) {
	start := time.Now()
	e := RealZooKeeper(t, 3)
	t.Logf("served after %v", time.Since(start))
	leader := e.Leader()
	t.Logf("leader %d followers %v", leader, e.Followers())
	start = time.Now()
	e.Kill(leader)
	next := e.WaitLeader(leader)
	t.Logf("new leader %d after %v", next, time.Since(start))
	start = time.Now()
	e.Start(leader)
	e.WaitReady()
	t.Logf("whole after %v", time.Since(start))
}
