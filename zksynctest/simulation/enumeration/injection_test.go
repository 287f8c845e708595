package enumeration_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest/simulation/network"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// plain is a scenario that shows every effect of a fault: a client writes and reads a znode at intervals. The
// first write is frame 0.1.up.3, its answer 0.1.down.3.
var plain = &scenario{name: "plain", clients: 1, run: func(s *stage) {
	s.operator(func() error { return s.server.Create("/x", nil) })
	c := s.clients[0]
	call := func(what string, f func(ctx context.Context, by *session.Session) error) {
		_ = c.do(what, func(ctx context.Context) error {
			by, err := c.manager().Session(ctx)
			if err == nil {
				err = f(ctx, by)
			}
			return err
		}, orLost, orConnectionLost, func(_ *stage, err error) bool { return strings.Contains(err.Error(), "throttled") }, orError)
	}
	for range 4 {
		call("Set", func(ctx context.Context, by *session.Session) error {
			_, err := by.Set(ctx, "/x", []byte("data"), -1)
			return err
		})
		call("Get", func(ctx context.Context, by *session.Session) error {
			_, _, err := by.Get(ctx, "/x")
			return err
		})
		for _, info := range s.server.Sessions() {
			s.say("negotiated %v", info.Timeout)
		}
		s.say("leader %d, client's server %d at %#x, newest %#x", s.server.Leader(), c.endpoint.Number(), c.endpoint.Zxid(), s.server.Zxid())
		c.sleep(timeout)
	}
}}

// An effect checks the outcome of a fault at one frame. It returns an error that
// names the missing consequence.
type effect func(o *outcome, at network.Address) error

func missing(ok bool, format string, args ...any) error {
	if ok {
		return nil
	}
	return fmt.Errorf(format, args...)
}

// handled reports whether the server has carried out the first write.
func handled(o *outcome) (done bool, code int32) {
	for _, op := range o.ops {
		if op.Code == zkserver.OpSetData && op.Conn == 1 {
			return op.Done, op.Err
		}
	}
	return false, 0
}

// answered returns the time at which the first write returned, and whether it succeeded.
func answered(o *outcome) (after time.Duration, ok bool) {
	for _, line := range o.said {
		if stamp, result, found := strings.Cut(line, ": client 0: Set: "); found {
			seconds, _ := strconv.ParseFloat(strings.TrimSpace(stamp), 64)
			return time.Duration(seconds * float64(time.Second)), result == "<nil>"
		}
	}
	return 0, false
}

// connections returns the number of connections, and the gap between the last frame of the first
// connection and the second connection.
func connections(o *outcome) (n int, gap time.Duration) {
	var last time.Time
	for _, f := range o.frames {
		n = max(n, f.Conn)
		if f.Conn == 1 {
			last = f.At
		} else if gap == 0 {
			gap = f.At.Sub(last)
		}
	}
	return n, gap
}

// silence returns the longest time without a frame.
func silence(o *outcome) (longest time.Duration) {
	for i := 1; i < len(o.frames); i++ {
		longest = max(longest, o.frames[i].At.Sub(o.frames[i-1].At))
	}
	return longest
}

func noted(o *outcome, what string) bool {
	for _, line := range o.said {
		if strings.Contains(line, what) {
			return true
		}
	}
	return false
}

func broken(done bool) effect {
	return func(o *outcome, _ network.Address) error {
		was, _ := handled(o)
		_, arrived := answered(o)
		n, _ := connections(o)
		return missing(was == done && !arrived && n > 1, "handled %v, answered %v, %d connections", was, arrived, n)
	}
}

// failed checks that the first write was answered with an internal error, and whether it was carried
// out, as the other three writes were.
func failed(done bool) effect {
	return func(o *outcome, _ network.Address) error {
		return missing(noted(o, "system error") && noted(o, "newest 0x100000006") == done, "no error, or not the expected number of writes")
	}
}

func silent(o *outcome, at network.Address) error {
	after, arrived := answered(o)
	n, _ := connections(o)
	return missing(!arrived && n > 1 && after > timeout/10, "answered %v after %v, %d connections", arrived, after, n)
}

func late(d time.Duration) effect {
	return func(o *outcome, _ network.Address) error {
		after, arrived := answered(o)
		n, _ := connections(o)
		return missing(!arrived && n > 1 || after >= d, "answered after %v", after)
	}
}

// paused checks that the leader commits nothing for d, and whether it then knows the first session,
// or ends the session before any other action. A leader that knows the session handles the first
// write, unless a later connection of the session is served before. Only the tests of zkserver tell
// the other two orders apart.
func paused(d time.Duration, known bool) effect {
	return func(o *outcome, _ network.Address) error {
		did, _ := handled(o)
		session := o.ops[0].Session
		var first time.Time // of the first write that the client has an answer to
		for _, op := range o.ops {
			switch {
			case op.Code == zkserver.OpSetData && op.Conn > 1 && first.IsZero():
				first = op.Time
			case op.Code == zkserver.OpConnect && op.Conn > 1 && op.Session == session && op.Done && op.Err == 0:
				did = true
			}
		}
		return missing(did == known && first.Sub(o.last) > d, "session known: %v; the next write after %v", did, first.Sub(o.last))
	}
}

func quiet(d time.Duration) effect {
	return func(o *outcome, _ network.Address) error {
		return missing(silence(o) >= d, "no frame for %v, want %v", silence(o), d)
	}
}

// effects maps every fault to the frame at which it is tried and its required effect. The name of a
// further test of a fault has a second word.
var effects = map[string]struct {
	at     string
	effect effect
}{
	"break-before":  {"0.1.up.3", broken(false)},
	"break-after":   {"0.1.up.3", broken(true)},
	"lose":          {"0.1.down.3", silent},
	"swallow":       {"0.1.up.3", silent},
	"delay-quarter": {"0.1.down.3", late(timeout / 4)},
	"delay-T":       {"0.1.down.3", late(timeout)},
	"delay-2T":      {"0.1.down.3", late(2 * timeout)},
	"throttle": {"0.1.up.3", func(o *outcome, _ network.Address) error {
		_, code := handled(o)
		return missing(code == int32(zkserver.ErrThrottledOp), "answered with %d", code)
	}},
	"forbid": {"0.1.up.3", func(o *outcome, _ network.Address) error {
		_, code := handled(o)
		return missing(code == int32(zkserver.ErrNoAuth), "answered with %d", code)
	}},
	"error-before": {"0.1.up.3", failed(false)},
	"error-after":  {"0.1.up.3", failed(true)},
	"throttle-all": {"0.1.up.3", func(o *outcome, _ network.Address) error {
		var refused int
		for _, op := range o.ops {
			if op.Err == int32(zkserver.ErrThrottledOp) {
				refused++
			}
		}
		after, _ := answered(o)
		return missing(refused > 3 && after > timeout/4, "%d requests were throttled, the answer came after %v", refused, after)
	}},
	"errors-of-reads": {"0.1.up.3", func(o *outcome, _ network.Address) error {
		return missing(noted(o, "get /x: zk: unknown error: system error"), "no read has failed")
	}},
	"forbid-reads": {"0.1.up.3", func(o *outcome, _ network.Address) error {
		return missing(noted(o, "Get: get /x: permission denied"), "no read was refused")
	}},
	"errors-before": {"0.1.up.3", failed(false)},
	"errors-after":  {"0.1.up.3", failed(true)},
	"quota": {"0.1.up.3", func(o *outcome, _ network.Address) error {
		_, code := handled(o)
		return missing(code == int32(zkserver.ErrQuotaExceeded), "answered with %d", code)
	}},
	"expire": {"0.1.up.3", func(o *outcome, _ network.Address) error {
		sessions := make(map[int64]bool)
		for _, f := range o.frames {
			sessions[f.Session] = true
		}
		delete(sessions, 0)
		return missing(len(sessions) == 2, "%d sessions", len(sessions))
	}},
	"lag": {"0.1.up.3", func(o *outcome, at network.Address) error {
		var written int64
		for _, op := range o.ops {
			switch {
			case op.Code == zkserver.OpSetData && op.Conn == 1:
				written = op.Zxid
			case op.Code == zkserver.OpConnect && op.Conn == 2:
				return missing(op.Zxid < written, "the other server is at %#x and has seen the write %#x", op.Zxid, written)
			}
		}
		return errors.New("the client has not come to another server")
	}},
	"cut": {"0.1.up.3", func(o *outcome, _ network.Address) error {
		was, _ := handled(o)
		_, arrived := answered(o)
		return missing(was && !arrived, "handled %v, answered %v", was, arrived)
	}},
	"cut connect": {"0.1.up.1", func(o *outcome, _ network.Address) error {
		sessions := make(map[int64]bool)
		for _, op := range o.ops {
			if op.Code == zkserver.OpConnect {
				sessions[op.Session] = true
			}
		}
		return missing(len(sessions) == 2, "%d sessions were opened, want one without an answer and a second one", len(sessions))
	}},
	"strand": {"0.1.up.3", func(o *outcome, _ network.Address) error {
		n, gap := connections(o)
		return missing(n > 1 && gap > timeout/2, "%d connections, the second %v after the first", n, gap)
	}},
	"depose": {"0.1.up.3", func(o *outcome, _ network.Address) error {
		return missing(noted(o, "leader 1") || noted(o, "leader 2"), "no other leader")
	}},
	"depose-strand": {"0.1.up.3", func(o *outcome, _ network.Address) error {
		n, _ := connections(o)
		return missing(n > 1 && (noted(o, "leader 1") || noted(o, "leader 2")), "%d connections, want another leader and a second connection", n)
	}},
	"pause-quarter": {"0.1.up.3", late(timeout / 4)},
	"pause-T":       {"0.1.up.3", paused(timeout, true)},
	"pause-T-sweep": {"0.1.up.3", paused(timeout, true)},
	"pause-2T":      {"0.1.up.3", paused(2*timeout, false)},
	"shorten": {"0.1.up.3", func(o *outcome, at network.Address) error {
		return missing(quiet(timeout)(o, at) == nil && noted(o, "negotiated 3s"), "no outage after a shorter timeout")
	}},
	"outage":        {"0.1.up.3", quiet(timeout)},
	"suspend-half":  {"0.1.up.3", quiet(timeout / 2)},
	"suspend-2T":    {"0.1.up.3", quiet(2 * timeout)},
	"cancel-lost":   {"0.1.up.3", cancelledWith("session lost")},
	"cancel-nonode": {"0.1.up.3", cancelledWith("node does not exist")},
	"cancel-taken":  {"0.1.up.3", cancelledWith("the id is taken")},
	"kill": {"0.1.up.3", func(o *outcome, _ network.Address) error {
		for _, op := range o.ops {
			if op.Code == zkserver.OpCloseSession && op.Conn == 1 {
				return errors.New("the Manager has closed its session")
			}
		}
		return missing(noted(o, session.ErrClosed.Error()), "no call has failed with %v", session.ErrClosed)
	}},
	"close": {"0.1.up.3", func(o *outcome, _ network.Address) error {
		return missing(noted(o, session.ErrClosed.Error()), "no call has failed with %v", session.ErrClosed)
	}},
}

func cancelledWith(cause string) effect {
	return func(o *outcome, _ network.Address) error {
		return missing(noted(o, "a sibling has failed: ") && noted(o, cause), "no call has failed with %q", cause)
	}
}

// Every fault has its effect: a fault that is not injected finds nothing.
func TestFaultsAreInjected(t *testing.T) {
	for _, f := range faults {
		if _, ok := effects[f.name]; !ok && removals[f.name] == (removal{}) {
			t.Errorf("the fault %s has no test", f.name)
		}
	}
	for name, e := range effects {
		t.Run(name, func(t *testing.T) {
			kind, _, _ := strings.Cut(name, " ")
			at, err := network.ParseAddress(e.at)
			if err != nil {
				t.Fatal(err)
			}
			mustHaveEffect(t, faultCase{setting: setting{plain, usual}}.with(strike{at, faultByName(kind)}), e.effect)
		})
	}
}

// mustHaveEffect runs a case, and fails unless its fault has an effect that the scenario does not
// have by itself.
func mustHaveEffect(t *testing.T, c faultCase, effect effect) {
	t.Helper()
	at := c.strikes[0].at
	out := run(t, c, nil, true)
	if out.struck != 1 || out.nothing != "" {
		t.Fatalf("struck %d times: %s", out.struck, out.nothing)
	}
	if err := effect(out, at); err != nil {
		t.Errorf("%v\n%s\n%s\n%s", err, lines(frames(out)), lines(requests(out)), lines(out.said))
	}
	none := run(t, faultCase{setting: c.setting}, nil, true)
	if effect(none, at) == nil {
		t.Error("the effect is there without the fault as well")
	}
}
