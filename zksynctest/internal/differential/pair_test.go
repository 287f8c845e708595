package differential

import (
	"context"
	"fmt"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// superDigest is the digest of the password "test".
const superDigest = "super:D/InIHSb7yEEbrWz8b9l71RjZJU="

// pair is a real server and two embedded servers, one of them in the mode of ZooKeeper 3.8. All
// servers have received the same requests since their start.
type pair struct {
	release          release
	real, plain, old target

	mu      sync.Mutex
	runs    int
	answers transcript // of the real server, to the last sequence

	difference string // why the last try failed
}

const parent = "/d"

func newPair(t *testing.T) *pair {
	t.Helper()
	ensemble := zksynctest.RealZooKeeper(t, 1,
		zksynctest.RealProperty("extendedTypesEnabled", "true"),
		zksynctest.RealProperty("minSessionTimeout", "30000"),
		zksynctest.RealProperty("DigestAuthenticationProvider.superDigest", superDigest),
		// No timer may change the tree.
		zksynctest.RealJVM("-Dznode.container.checkIntervalMs=86400000"))
	addr := ensemble.DirectAddr(1)
	embedded := func(compat38 bool) *zkserver.Server {
		s, err := zkserver.New(zkserver.Config{
			TickTime:          500 * time.Millisecond,
			MinSessionTimeout: 30 * time.Second,
			MaxSessionTimeout: time.Minute,
			ExtendedTypes:     true,
			ReapInterval:      24 * time.Hour,
			SuperDigest:       superDigest,
			OpsKept:           64,
			Compat38:          compat38,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	memory := func(s *zkserver.Server) func() (net.Conn, error) {
		return func() (net.Conn, error) {
			return s.Dial(context.Background(), "tcp", zksynctest.InMemory)
		}
	}
	p := &pair{
		release: releaseOf(t, addr),
		real:    target{"ZooKeeper", patience, func() (net.Conn, error) { return net.DialTimeout("tcp", addr, patience) }},
		plain:   target{"zkserver", embeddedPatience, memory(embedded(false))},
		old:     target{"zkserver with Compat38", embeddedPatience, memory(embedded(true))},
	}
	for _, s := range p.targets() {
		if _, err := s.play(nil, parent); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func (p *pair) targets() []target {
	list := []target{p.real, p.plain}
	if p.release.before(release{3, 8, 2}) {
		// Later releases of 3.8 have some of the changes of 3.9.
		list = append(list, p.old)
	}
	return list
}

// play runs a sequence on all servers and describes the first difference of their answers, if there
// is one. If the table of differences between releases explains the difference, play returns the
// table's entry in excused instead.
func (p *pair) play(steps []step) (difference string, excused *versionDifference, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.runs++
	root := fmt.Sprintf("%s/%d", parent, p.runs)
	list := p.targets()
	outs, errs := make([]transcript, len(list)), make([]error, len(list))
	var wg sync.WaitGroup
	for i, s := range list {
		wg.Go(func() { outs[i], errs[i] = s.play(steps, root) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return "", nil, err
		}
	}
	p.answers = outs[0]
	if len(list) > 2 {
		if d := compare(outs[0], outs[2], nil); d != nil {
			return d.describe(p.real.name, p.old.name, outs[0], outs[2]), nil, nil
		}
	}
	d := compare(outs[0], outs[1], equalise(p.release))
	if d == nil {
		return "", nil, nil
	}
	if excused := d.excuse(steps, p.release); excused != nil {
		return "", excused, nil
	}
	return d.describe(p.real.name, p.plain.name, outs[0], outs[1]), nil, nil
}

// mismatch is the first place at which two transcripts differ.
type mismatch struct {
	conn, at     int
	theirs, ours frame // the two frames; an empty operation if there is no frame
}

// compare finds the first mismatch, on the connection that was opened first. If equal is not nil,
// it may accept two different frames as equal.
func compare(theirs, ours transcript, equal func(theirs, ours frame) bool) *mismatch {
	for c := range max(len(theirs), len(ours)) {
		var a, b []frame
		if c < len(theirs) {
			a = theirs[c]
		}
		if c < len(ours) {
			b = ours[c]
		}
		for i := range max(len(a), len(b)) {
			m := mismatch{conn: c, at: i}
			if i < len(a) {
				m.theirs = a[i]
			}
			if i < len(b) {
				m.ours = b[i]
			}
			if m.theirs.String() != m.ours.String() && (equal == nil || !equal(m.theirs, m.ours)) {
				return &m
			}
		}
	}
	return nil
}

func (m *mismatch) describe(their, our string, theirs, ours transcript) string {
	var b strings.Builder
	fmt.Fprintf(&b, "on connection %d, frame %d\n%s: %v\n%s: %v\n", m.conn, m.at, their, m.theirs, our, m.ours)
	for _, s := range []struct {
		name string
		t    transcript
	}{{their, theirs}, {our, ours}} {
		fmt.Fprintf(&b, "all that %s said:\n", s.name)
		for c, frames := range s.t {
			for _, f := range frames {
				fmt.Fprintf(&b, "\tconnection %d: %v\n", c, f)
			}
		}
	}
	return b.String()
}

// release is the number of a version of ZooKeeper.
type release [3]int

func (r release) before(other release) bool {
	for i := range r {
		if r[i] != other[i] {
			return r[i] < other[i]
		}
	}
	return false
}

func releaseOf(t *testing.T, addr string) (r release) {
	t.Helper()
	nc, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	_ = nc.SetDeadline(time.Now().Add(patience))
	if _, err := nc.Write([]byte("srvr")); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 256)
	n, err := nc.Read(answer)
	m := regexp.MustCompile(`version: (\d+)\.(\d+)\.(\d+)`).FindSubmatch(answer[:n])
	if m == nil {
		t.Fatalf("srvr answers %q, %v", answer[:n], err)
	}
	for i := range r {
		r[i], _ = strconv.Atoi(string(m[i+1]))
	}
	return r
}

func parse(text string) (steps []step, err error) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		s, err := parseStep(line)
		if err != nil {
			return nil, err
		}
		steps = append(steps, s)
	}
	return steps, nil
}

// number returns a setting from the environment.
func number(t testing.TB, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		t.Fatalf("%s=%q: it must be a number", name, text)
	}
	return n
}
