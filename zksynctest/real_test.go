package zksynctest

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/zksynctest/internal/realzk"
)

// A RealEnsemble of one server answers through its link and at its direct address.
func TestRealSingle(t *testing.T) {
	t.Parallel()
	start := time.Now()
	e := RealZooKeeper(t, 1)
	t.Logf("served after %v", time.Since(start))
	if leader, followers := e.Leader(), e.Followers(); leader != 1 || len(followers) != 0 {
		t.Errorf("leader %d, followers %v", leader, followers)
	}
	if servers, addr := e.Servers(), e.Addr(1); servers != addr || addr == e.DirectAddr(1) {
		t.Errorf("Servers() = %s, Addr(1) = %s, DirectAddr(1) = %s", servers, addr, e.DirectAddr(1))
	}
	client := openSession(t, e.Addr(1), 4*time.Second, nil)
	if err := client.create("/kept", answerTime); err != nil {
		t.Fatal(err)
	}
	start = time.Now()
	e.Restart(1)
	t.Logf("restarted in %v", time.Since(start))
	if err := client.ping(answerTime); err == nil || isSilence(err) {
		t.Errorf("ping over the old connection: %v", err)
	}
	client = openSession(t, e.Addr(1), 4*time.Second, nil)
	const nodeExists = "error -110"
	if err := client.create("/kept", answerTime); err == nil || !strings.Contains(err.Error(), nodeExists) {
		t.Errorf("create what was there before the restart: %v", err)
	}
	if !strings.Contains(e.Log(1), "Server environment") {
		t.Errorf("the log lacks its beginning:\n%s", e.Log(1))
	}
}

// When Kill of a real server returns, the server is dead; when Start returns, the server serves.
func TestRealKillAndStart(t *testing.T) {
	t.Parallel()
	e := RealZooKeeper(t, 1)
	for range 2 { // the second Kill finds no process
		e.Kill(1)
	}
	if leader := e.Leader(); leader != 0 {
		t.Errorf("a dead server leads: %d", leader)
	}
	if _, err := trySession(e.Addr(1), time.Second, nil); err == nil {
		t.Error("a dead server granted a session")
	}
	for range 2 {
		e.Start(1)
	}
	openSession(t, e.Addr(1), 4*time.Second, nil)
}

// When Pause of a real server returns, the server is silent; when Resume returns, the server
// answers again.
func TestRealPauseAndResume(t *testing.T) {
	bounds.Long(t)
	t.Parallel()
	e := RealZooKeeper(t, 1)
	client := openSession(t, e.Addr(1), 20*time.Second, nil)
	e.Pause(1)
	if err := client.ping(300 * time.Millisecond); !isSilence(err) {
		t.Errorf("ping a paused server: %v", err)
	}
	e.Resume(1)
	if err := client.ping(answerTime); err != nil {
		t.Errorf("ping a resumed server: %v", err)
	}
	e.Pause(1)
	e.Kill(1) // Kill also works on a paused server
	e.Start(1)
	openSession(t, e.Addr(1), 4*time.Second, nil)
}

// Cut, Heal, Reset and Delay of a client's link have their effects when they return, and none on direct connections.
func TestRealClientLink(t *testing.T) {
	t.Parallel()
	e := RealZooKeeper(t, 1)
	through := openSession(t, e.Addr(1), 20*time.Second, nil)
	direct := openSession(t, e.DirectAddr(1), 20*time.Second, nil)
	e.Cut(Client, 1)
	if err := through.ping(300 * time.Millisecond); !isSilence(err) {
		t.Errorf("ping across a cut link: %v", err)
	}
	if nc, err := net.DialTimeout("tcp", e.Addr(1), answerTime); err != nil {
		t.Errorf("connect across a cut link: %v", err)
	} else {
		defer nc.Close()
	}
	if err := direct.ping(answerTime); err != nil {
		t.Errorf("ping past the cut link: %v", err)
	}
	e.Heal(1, Client)
	if err := through.ping(answerTime); err == nil || isSilence(err) {
		t.Errorf("ping after the link was healed: %v", err)
	}
	through = openSession(t, e.Addr(1), 20*time.Second, nil)
	const delay = 60 * time.Millisecond
	e.Delay(Client, 1, delay)
	start := time.Now()
	if err := through.ping(answerTime); err != nil || time.Since(start) < 2*delay {
		t.Errorf("a delayed ping took %v: %v", time.Since(start), err)
	}
	e.Delay(Client, 1, 0)
	e.Reset(Client, 1)
	if err := through.ping(answerTime); err == nil || isSilence(err) {
		t.Errorf("ping after Reset: %v", err)
	}
	if err := direct.ping(answerTime); err != nil {
		t.Errorf("ping past the link that was reset: %v", err)
	}
	e.Cut(Client, 1)
	e.HealAll()
	openSession(t, e.Addr(1), 4*time.Second, nil)
}

// RealTLS, RealProperty, RealTickTime, RealSyncLimit and RealJVM have their effects.
func TestRealOptions(t *testing.T) {
	t.Parallel()
	e := RealZooKeeper(t, 1, RealTickTime(300*time.Millisecond), RealSyncLimit(7), RealTLS(),
		RealProperty("maxSessionTimeout", "5000"), RealJVM("-Xmx200m"))
	client := openSession(t, e.TLSAddr(1), 4*time.Second, e.TLS())
	if err := client.create("/by-tls", answerTime); err != nil {
		t.Error(err)
	}
	openSession(t, e.Addr(1), 4*time.Second, nil)
	anonymous := e.TLS()
	anonymous.Certificates = nil
	if _, err := trySession(e.TLSAddr(1), time.Second, anonymous); err == nil {
		t.Error("a client without a certificate got a session")
	}
	conf, err := realzk.Ask(t.Context(), e.DirectAddr(1), "conf")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"tickTime=300\n", "minSessionTimeout=600\n", "maxSessionTimeout=5000\n"} {
		if !strings.Contains(conf, want) {
			t.Errorf("the configuration lacks %q:\n%s", want, conf)
		}
	}
	e.Cut(Client, 1)
	if err := client.ping(300 * time.Millisecond); !isSilence(err) {
		t.Errorf("ping the secure port across a cut link: %v", err)
	}
}

// RealShared gives each test its own links to one shared server.
func TestRealShared(t *testing.T) {
	start := time.Now()
	a := RealShared(t)
	b := RealShared(t)
	t.Logf("served after %v", time.Since(start))
	if a.DirectAddr(1) != b.DirectAddr(1) || a.Addr(1) == b.Addr(1) {
		t.Errorf("servers %s and %s by way of %s and %s", a.DirectAddr(1), b.DirectAddr(1), a.Addr(1), b.Addr(1))
	}
	a.Cut(Client, 1)
	openSession(t, b.Addr(1), 4*time.Second, nil)
	a.HealAll()
	openSession(t, a.Addr(1), 4*time.Second, nil)
	fake := &fakeTB{TB: t}
	a.tb = fake
	a.Kill(1)
	fake.want(t, "other tests use it")
	a.tb = t
	openSession(t, b.Addr(1), 4*time.Second, nil)
}
