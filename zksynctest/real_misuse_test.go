package zksynctest

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// fakeTB records the messages of a helper to a test.
type fakeTB struct {
	testing.TB
	said []string
}

func (f *fakeTB) Helper() {}

func (f *fakeTB) Errorf(format string, args ...any) {
	f.said = append(f.said, fmt.Sprintf(format, args...))
}

func (f *fakeTB) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	runtime.Goexit()
}

func (f *fakeTB) Fatal(args ...any) { f.Fatalf("%s", fmt.Sprint(args...)) }

func (f *fakeTB) Skipf(format string, args ...any) { f.Fatalf("skipped: "+format, args...) }

func (f *fakeTB) want(t *testing.T, texts ...string) {
	t.Helper()
	all := strings.Join(f.said, "\n")
	for _, text := range texts {
		if !strings.Contains(all, text) {
			t.Errorf("the test was told %q; that lacks %q", all, text)
		}
	}
	f.said = nil
}

// callReal calls RealZooKeeper with a fake test, on a goroutine that the fake test can end.
func callReal(t *testing.T, n int, opts ...RealOption) *fakeTB {
	fake := &fakeTB{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		RealZooKeeper(fake, n, opts...)
	}()
	<-done
	return fake
}

// RealZooKeeper skips the test with a clear message without ZooKeeper, and fails it if ZooKeeper is required.
func TestRealWithoutZooKeeper(t *testing.T) {
	t.Setenv("ZOOKEEPER_HOME", t.TempDir())
	t.Setenv(RequireRealEnv, "")
	callReal(t, 1).want(t, "skipped:", "NOT TESTED AGAINST A REAL ZOOKEEPER", "apt-get install -y zookeeper", "ZOOKEEPER_HOME")
	t.Setenv(RequireRealEnv, "1")
	fake := callReal(t, 1)
	if strings.Contains(strings.Join(fake.said, ""), "skipped:") {
		t.Error("skipped although a real server was required")
	}
	fake.want(t, "apt-get install -y zookeeper", RequireRealEnv)
}

// A wrong server number or option fails the test with a message that names the valid ones.
func TestRealMisuse(t *testing.T) {
	e := RealZooKeeper(t, 1)
	fake := &fakeTB{TB: t}
	e.tb = fake
	for _, call := range []struct {
		do   func()
		want string
	}{
		{func() { e.Kill(2) }, "no server 2"},
		{func() { e.Cut(1, 1) }, "to itself"},
		{func() { e.Cut(Client, Client) }, "no server 0"},
		{func() { e.TLS() }, "RealTLS"},
		{func() { e.TLSAddr(1) }, "RealTLS"},
		{func() { e.Log(0) }, "no server 0"},
		{func() { e.ResetEnd(1, 1) }, "to itself"},
		{func() { e.Depose() }, "server 1 leads, and [] follow"},
		{func() { e.SetProperty(2, "a", "b") }, "no server 2"},
		{func() { e.SetProperty(1, "a b", "c") }, "a b"},
	} {
		call.do()
		fake.want(t, call.want)
	}
	e.Kill(1)
	e.Pause(1)
	fake.want(t, "does not run")
	e.tb = t
	callReal(t, 2).want(t, "1 or 3")
	callReal(t, 1, RealTickTime(0)).want(t, "tick time")
	callReal(t, 1, RealSyncLimit(0)).want(t, "sync limit")
	callReal(t, 1, RealProperty("a b", "c")).want(t, "a b")
	callReal(t, 1, RealProperty("tickTime", "nonsense")).want(t, "server 1", "it ended", "nonsense")
}

// A call on a RealEnsemble after its test has ended does not make another test panic.
func TestRealAfterTheTest(t *testing.T) {
	fake := &fakeTB{TB: t}
	var own, shared *Ensemble
	t.Run("", func(t *testing.T) {
		own, shared = RealZooKeeper(t, 1), RealShared(t)
		own.tb, shared.tb = fake, fake
	})
	if own == nil {
		t.Skip("the servers were skipped")
	}
	own.Kill(1)
	own.Start(1)
	own.Log(1)
	own.WaitReady()
	own.WaitLeader()
	own.Reset(Client, 1)
	shared.Cut(Client, 1)
	shared.HealAll()
	if leader := own.Leader(); leader != 0 || len(fake.said) != 0 {
		t.Errorf("leader %d, and the test was told %q", leader, fake.said)
	}
}

// RealZooKeeper works in a function of Cleanup, where the context of the test has ended.
func TestRealZooKeeperInACleanup(t *testing.T) {
	var fake *fakeTB
	t.Run("", func(t *testing.T) {
		t.Cleanup(func() { fake = callReal(t, 1) })
	})
	told := strings.Join(fake.said, "\n")
	if strings.HasPrefix(told, "skipped:") {
		t.Skip(told)
	}
	if told != "" {
		t.Errorf("the test was told %q", told)
	}
}

// SetProperty of the shared server fails the test: the property would take effect at a start that no test may cause.
func TestSetPropertyOfTheSharedServer(t *testing.T) {
	e := RealShared(t)
	fake := &fakeTB{TB: t}
	e.tb = fake
	e.SetProperty(1, "tickTime", "777")
	fake.want(t, "the server of RealShared, because other tests use it; start one with RealZooKeeper")
	e.tb = t
}
