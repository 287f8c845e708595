package enumeration_test

import (
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest/simulation/surroundings"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A world is what surrounds the clients of a scenario: the servers, the options of the sessions, the
// distances, and the znodes that exist before the scenario begins. A case passes under the same
// conditions in every world, unless the documentation allows more.
type world struct {
	name    string
	server  func(cfg *zkserver.Config)       // changes the configuration, if not nil
	chroot  string                           // of the clients, which create it
	options func(c *client) []session.Option // of a client's session, if not nil
	setUp   func(s *stage)                   // called before the clients connect, if not nil
	layout  zksync.Layout                    // of the primitives that have it
	first   bool                             // the first client is far away, and not the last one
	check   func(s *stage)                   // checks the tree after a case, if not nil
	far     time.Duration                    // least time of a frame from and to the last client
	size    int                              // of the data of a message, or 0 for the shortest
	holds   bool                             // the sessions hold something else as long as the scenario runs
	only    func(*scenario) bool             // nil if every scenario makes sense in the world
	without []string                         // names of the faults that make no sense in the world
}

// suits reports whether a scenario makes sense in the world.
func (w *world) suits(s *scenario) bool { return w.only == nil || w.only(s) }

// lacks reports whether a fault makes no sense in the world.
func (w *world) lacks(f *fault) bool { return slices.Contains(w.without, f.name) }

// usual is the world of a case whose name has no world: new servers with an empty tree, default
// options, and all clients near.
var usual = &world{name: "usual"}

// worlds lists all worlds, the usual one first.
var worlds = []*world{usual,
	// The numbers of each directory are used up soon after it was created.
	{name: "spent", setUp: spendNumbers, only: func(s *scenario) bool {
		// A Put that finds no number waits until all messages are consumed. In these scenarios a message stays, or the
		// consumers begin behind the Put.
		waits := strings.HasSuffix(s.name, "-bulk") || strings.HasSuffix(s.name, "-unreadable") || strings.HasSuffix(s.name, "-child")
		return s.hasDirectories() && !waits
	}, without: []string{"intrude"}}, // the creations would use the rest of the numbers up
	// The servers know none of the operations that came after ZooKeeper 3.4.
	{name: "old", server: func(cfg *zkserver.Config) { cfg.Without, cfg.Compat38 = surroundings.New35, true }},
	// The servers are of the version with which the other tests run.
	{name: "v38", server: func(cfg *zkserver.Config) { cfg.Compat38 = true }},
	// Requests and answers are as small as the options allow, and few messages fit into one.
	{name: "small", size: 400, server: func(cfg *zkserver.Config) { cfg.MaxFrame = smallest }, options: smallFrames},
	// Messages are as large as the Put of a DelayQueue accepts, and no two fit into a request or an answer.
	{name: "large", size: 1530, server: func(cfg *zkserver.Config) { cfg.MaxFrame = 2 * smallest }, options: func(*client) []session.Option {
		return []session.Option{session.WithMaxRequest(2 * smallest), session.WithMaxAnswer(2 * smallest)}
	}, only: func(s *scenario) bool { return s.hasQueue() && !strings.HasSuffix(s.name, "-bulk") }},
	// The names of the messages that the consumers skip do not fit into the claim table.
	{name: "full", setUp: fillClaims, options: func(*client) []session.Option {
		return []session.Option{session.WithMaxRequest(smallest)}
	}, only: func(s *scenario) bool {
		if !strings.HasPrefix(s.name, "queue-") && !strings.HasPrefix(s.name, "priority-") {
			return false
		}
		_, what, _ := strings.Cut(s.name, "-")
		// These need to know which message is the first, or how many there are.
		return !slices.Contains([]string{"unreadable", "child", "peek", "trytake", "capacity"}, what)
	}, without: []string{"wipe"}},
	// All clients have one credential, and nobody else can read what they create.
	{name: "auth", options: func(*client) []session.Option {
		return []session.Option{session.WithAuth("digest", []byte("user:secret"))}
	}},
	// Each client has another credential, and an ACL with the credentials of all.
	{name: "users", options: ownCredential},
	// The last client has a round trip of T/20.
	{name: "far", far: timeout / 40},
	// The first client has it.
	{name: "far-first", far: timeout / 40, first: true},
	// Each session holds something else.
	{name: "holding", holds: true},
	// The znodes have the layout of kazoo.
	{name: "kazoo", layout: zksync.LayoutKazoo, only: func(s *scenario) bool {
		return slices.ContainsFunc([]string{"mutex", "rwmutex", "semaphore", "election", "leader", "queue"}, func(begin string) bool { return strings.HasPrefix(s.name, begin) })
	}},
	// The clients have a chroot, which is open to them alone.
	{name: "chroot", chroot: "/app/prod", options: func(*client) []session.Option {
		return []session.Option{session.WithAuth("digest", []byte("user:secret"))}
	}},
	// Other programs have znodes in all directories: some may not be read, and some are larger than the
	// largest answer.
	{name: "crowd", setUp: crowd, check: checkData, options: func(*client) []session.Option {
		return []session.Option{session.WithMaxAnswer(8 * smallest)}
	}},
	// The directories exist, and the clients have no permission above them.
	{name: "denied", setUp: func(s *stage) { s.createDirectories(0, zk.PermAll) }, only: (*scenario).hasDirectories, without: []string{"wipe"}},
	// The clients may not write to the data of the directories, which exist.
	{name: "unwritable", setUp: func(s *stage) { s.createDirectories(zk.PermAll, zk.PermAll&^zk.PermWrite) }, only: func(s *scenario) bool {
		return s.hasDirectories() && !s.hasQueue() && !strings.HasPrefix(s.name, "doublebarrier")
	}},
}

// smallest is the least value of WithMaxRequest and WithMaxAnswer.
const smallest = 1024

// smallFrames are the options with the least sizes.
func smallFrames(c *client) []session.Option {
	answer := smallest
	if strings.HasSuffix(c.stage.of.scenario.name, "-bulk") {
		answer *= 8 // a list of all messages has to fit
	}
	return []session.Option{session.WithMaxRequest(smallest), session.WithMaxAnswer(answer)}
}

// ownCredential returns options with a credential that differs from the credentials of the other
// clients, and an ACL for all of them.
func ownCredential(c *client) []session.Option {
	user := func(i int) string { return "user-" + string(rune('a'+i)) }
	var acl []zk.ACL
	for i := range c.stage.clients {
		acl = append(acl, zk.DigestACL(zk.PermAll, user(i), "secret")...)
	}
	return []session.Option{session.WithAuth("digest", []byte(user(c.number)+":secret")), session.WithACL(acl...)}
}
