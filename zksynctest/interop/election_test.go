package interop

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/zksync"
)

// elections has the elections of other clients, with the options that our Election needs to take
// part in them.
var elections = map[string]struct {
	in   *language
	kind string
	opts []zksync.ElectionOption
}{
	"LeaderLatch":    {java, "curator-latch", nil},
	"LeaderSelector": {java, "curator-selector", []zksync.ElectionOption{zksync.WithLayout(zksync.LayoutLeaderSelector)}},
	"kazoo":          {python, "kazoo-election", []zksync.ElectionOption{zksync.WithLayout(zksync.LayoutKazoo)}},
}

// An Election elects together with Curator's LeaderLatch, and by an option with LeaderSelector and
// kazoo's Election. TestElection passes leadership on in both directions. Each client sees the
// other client's candidates.
func TestElection(t *testing.T) {
	t.Parallel()
	for name, their := range elections {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			both(t, func(t *testing.T, srv servers.Server) {
				path := servers.Path(t)
				m := srv.Connect(t)
				s := live(t, m)
				e := zksync.NewElection(m, path, append(their.opts, zksync.WithID("ours"))...)
				lead, err := e.Campaign(t.Context())
				must(t, err)
				first := token(t, lead)
				peer := their.in.peer(t).connect(t, srv.Address(), alive)
				theirs := peer.make(t, their.kind, path, "theirs")
				theirs.call(t, "start")
				awaitChildren(t, s, path, 2)
				wantCandidates(t, e, "ours", "theirs")
				if got := strings.ReplaceAll(theirs.call(t, "participants"), "*", ""); got != "ours,theirs" {
					t.Errorf("%s sees %s", name, got)
				}
				theirs.want(t, "false", "leads")
				must(t, e.Resign())
				theirs.want(t, "true", "await", "30000")
				c, err := e.Leader(t.Context())
				if err != nil || c.ID != "theirs" || c.Token <= first {
					t.Errorf("the leader is %+v, %v", c, err)
				}

				again := make(chan context.Context, 1)
				go func() {
					lead, err := e.Campaign(t.Context())
					if err != nil {
						t.Error(err)
					}
					again <- lead
				}()
				awaitChildren(t, s, path, 2)
				wantCandidates(t, e, "theirs", "ours")
				select {
				case <-again:
					t.Fatal("two lead")
				default:
				}
				theirs.call(t, "close")
				if last := token(t, <-again); last <= c.Token {
					t.Errorf("token %d after %d", last, c.Token)
				}
				must(t, e.Resign())
				awaitChildren(t, s, path, 0)
			})
		})
	}
}

// When the process of a leader is killed, a candidate of another client leads.
func TestLeaderIsKilled(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, srv servers.Server) {
		path := servers.Path(t)
		m := srv.Connect(t)
		process := java.process(t)
		theirs := process.connect(t, srv.Address(), deadSession).make(t, "curator-latch", path, "theirs")
		theirs.call(t, "start")
		theirs.want(t, "true", "await", "30000")
		ours := golang.process(t)
		e := ours.connect(t, srv.Address(), deadSession).make(t, "zksync-election", path)
		leading := e.start("acquire")
		awaitChildren(t, live(t, m), path, 2)
		unanswered(t, "Campaign beside a leader", leading)
		process.kill()
		answered(t, "Campaign", leading)

		next := java.peer(t).connect(t, srv.Address(), alive).make(t, "curator-latch", path, "next")
		next.call(t, "start")
		awaitChildren(t, live(t, m), path, 2)
		next.want(t, "false", "leads")
		ours.kill()
		next.want(t, "true", "await", "30000")
		next.call(t, "close")
	})
}

// ZooKeeper's election recipe and an Election do not elect together. The recipe treats every child
// as its own "n_<seq>" znode, and fails for any other name, and an Election ignores the recipe's
// candidates. A client could not find a znode without a GUID again if the answer to its creation
// was lost.
func TestElectionRecipe(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, srv servers.Server) {
		path := servers.Path(t)
		m := srv.Connect(t)
		e := zksync.NewElection(m, path, zksync.WithID("ours"))
		_, err := e.Campaign(t.Context())
		must(t, err)
		theirs := java.peer(t).connect(t, srv.Address(), alive).make(t, "recipe-election", path, "theirs")
		a := <-theirs.start("start")
		if a.err == nil || !strings.Contains(a.err.Error(), "NumberFormatException") {
			t.Errorf("the recipe beside us: %q, %v", a.text, a.err)
		}
		wantCandidates(t, e, "ours")
		must(t, e.Resign())
	})
}

func wantCandidates(t *testing.T, e *zksync.Election, want ...string) {
	t.Helper()
	all, err := e.Candidates(t.Context())
	must(t, err)
	var got []string
	for _, c := range all {
		got = append(got, c.ID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("candidates %q, want %q", got, want)
	}
}

func token(t *testing.T, ctx context.Context) int64 {
	t.Helper()
	n, ok := zksync.Token(ctx)
	if !ok {
		t.Error("no token")
	}
	return n
}
