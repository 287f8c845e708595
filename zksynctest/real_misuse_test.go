package zksynctest

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// fakeTB keeps what a helper tells a test.
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

// callReal calls RealZooKeeper with a fake test, on a goroutine to end.
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
