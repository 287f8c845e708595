package simulation_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest/simulation/surroundings"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A setting is what surrounds the clients of a simulation: the servers, the options of the sessions,
// and the counters of the directories.
type setting struct {
	name    string
	server  func(cfg *zkserver.Config)                  // changes the configuration, if not nil
	options func(p *plan, manager int) []session.Option // of a Manager, if not nil
	begin   func(w *world)                              // called before the sessions are opened, if not nil
	suits   func(w *workload) bool                      // nil if every workload makes sense in the setting

	fewClaims bool // a consumer may have room for the name of one message alone
}

// settings lists the settings, the usual one first.
var settings = []*setting{
	{name: "usual"},
	{name: "servers without the operations that came after ZooKeeper 3.4", server: func(cfg *zkserver.Config) { cfg.Without, cfg.Compat38 = surroundings.New35, true }},
	{name: "requests of 1 kB, and answers of 16 kB", options: func(*plan, int) []session.Option {
		return []session.Option{session.WithMaxRequest(1024), session.WithMaxAnswer(16384)}
	}, fewClaims: true},
	{name: "a credential for each manager", options: ownCredential},
	{name: "directories whose numbers are soon used up", begin: spendNumbers, suits: func(w *workload) bool {
		// A Put that finds no number waits until all messages are consumed.
		return !strings.Contains("queue crowd mixed", w.name)
	}},
}

// drawSetting draws a setting for a workload: half of the plans have the usual one.
func drawSetting(r *rand.Rand, w *workload) *setting {
	if s := settings[1+r.IntN(len(settings)-1)]; r.IntN(2) == 0 && (s.suits == nil || s.suits(w)) {
		return s
	}
	return settings[0]
}

// Each setting, and each fault in which servers refuse requests, shows in the answers of the servers.
func TestSettingsHaveAnEffect(t *testing.T) {
	answered := func(code int32) func(op zkserver.Op) bool {
		return func(op zkserver.Op) bool {
			return op.Err == code || slices.ContainsFunc(op.Sub, func(sub zkserver.SubOp) bool { return sub.Err == code })
		}
	}
	created := func(op zkserver.Op) bool {
		return op.Err == 0 && op.Zxid != 0 && slices.ContainsFunc(append(op.Sub, zkserver.SubOp{Code: op.Code, Path: op.Path}), func(sub zkserver.SubOp) bool {
			return sub.Path == "/locks/m" && surroundings.IsDirectory(sub)
		})
	}
	of := func(name string) *setting {
		i := slices.IndexFunc(settings, func(s *setting) bool { return strings.Contains(s.name, name) })
		return settings[i]
	}
	for name, test := range map[string]struct {
		setting *setting
		fault   faultKind // none if 0
		shows   func(op zkserver.Op) bool
		least   int
	}{
		"3.4":              {of("3.4"), 0, answered(int32(zkserver.ErrUnimplemented)), 1},
		"credentials":      {of("credential"), 0, func(op zkserver.Op) bool { return op.Code == zkserver.OpAuth }, 2},
		"spent numbers":    {of("numbers"), 0, created, 2},
		"error before":     {settings[0], errBefore, answered(int32(zkserver.ErrSystem)), 1},
		"error after":      {settings[0], errAfter, answered(int32(zkserver.ErrSystem)), 1},
		"throttling":       {settings[0], throttleAll, answered(int32(zkserver.ErrThrottledOp)), 2},
		"errors of all":    {settings[0], errsOfAll, answered(int32(zkserver.ErrSystem)), 2},
		"errors of reads":  {settings[0], errsOfReads, answered(int32(zkserver.ErrSystem)), 2},
		"errors of writes": {settings[0], errsOfWrites, answered(int32(zkserver.ErrSystem)), 2},
		"quota":            {settings[0], quota, answered(int32(zkserver.ErrQuotaExceeded)), 1},
	} {
		p := newPlan(1, []*workload{mutexes})
		p.setting, p.faults = test.setting, nil
		if test.fault != 0 {
			p.faults = []fault{{at: p.timeout() / 2, kind: test.fault, length: p.timeout()}}
		}
		out := simulate(t, p)
		n := 0
		for _, op := range out.ops {
			if test.shows(op) {
				n++
			}
		}
		if n < test.least || len(out.wrong) > 0 {
			t.Errorf("%s: %d requests show it, want at least %d; wrong: %q", name, n, test.least, out.wrong)
		}
	}
}

// ownCredential returns options with a credential that differs from the credentials of the other
// Managers, and an ACL for all of them.
func ownCredential(p *plan, manager int) []session.Option {
	user := func(i int) string { return fmt.Sprint("user-", i) }
	var acl []zk.ACL
	for i := range p.managers {
		acl = append(acl, zk.DigestACL(zk.PermAll, user(i), "secret")...)
	}
	return []session.Option{session.WithAuth("digest", []byte(user(manager)+":secret")), session.WithACL(acl...)}
}

// spendNumbers leaves each directory that a client creates a few numbers.
func spendNumbers(w *world) {
	r := w.plan.rnd(forNumbers)
	surroundings.SpendNumbers(w.srv, func(string) int32 { return int32(2 + r.IntN(8)) })
}
