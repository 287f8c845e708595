package differential

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// embedded starts an embedded server for tests of the suite itself.
func embedded(t *testing.T, cfg zkserver.Config) target {
	t.Helper()
	s := zksynctest.Start(t, zksynctest.WithConfig(cfg))
	server := target{"zkserver", embeddedPatience, func() (net.Conn, error) {
		return s.Dial(context.Background(), "tcp", zksynctest.InMemory)
	}}
	if _, err := server.play(nil, parent); err != nil {
		t.Fatal(err)
	}
	return server
}

// The comparison reports each kind of difference.
func TestComparisonObjects(t *testing.T) {
	for _, c := range []struct {
		name  string
		other zkserver.Config
		lines string
		few   string // the lines that remain after minimise
	}{
		{"an error", zkserver.Config{ExtendedTypes: true}, "0 create ~/a\n0 createTTL ~/b\n1 exists ~/a", "0 createTTL ~/b"},
		{"the header of an event", zkserver.Config{Compat38: true}, "0 create ~/a\n1 getData ~/a watch\n0 create ~/b\n0 setData ~/a",
			"0 create ~/a\n1 getData ~/a watch\n0 setData ~/a"},
		{"the record of a reply", zkserver.Config{Compat38: true}, "0 ping\n0 multi [create2 ~/a]\n0 ping", "0 multi [create2 ~/a]"},
		{"the end of a connection", zkserver.Config{Without: []zkserver.OpCode{zkserver.OpSync}}, "0 sync ~\n0 ping", "0 sync ~"},
	} {
		t.Run(c.name, func(t *testing.T) {
			one, other := embedded(t, zkserver.Config{}), embedded(t, c.other)
			runs := 0
			differ := func(steps []step) bool {
				runs++
				root := parent + "/" + strings.Repeat("x", runs)
				a, err := one.play(steps, root)
				if err != nil {
					t.Fatal(err)
				}
				b, err := other.play(steps, root)
				if err != nil {
					t.Fatal(err)
				}
				return compare(a, b, nil) != nil
			}
			steps, err := parse(c.lines)
			if err != nil {
				t.Fatal(err)
			}
			if !differ(steps) {
				t.Fatal("no difference seen")
			}
			if few := strings.ReplaceAll(text(minimise(steps, differ)), "\t", ""); strings.TrimSpace(few) != c.few {
				t.Errorf("minimised to\n%s\nwant\n%s", few, c.few)
			}
		})
	}
}

// The comparison reports a reply or an event that is missing or in another place.
func TestComparisonSeesWhatIsMissing(t *testing.T) {
	reply, event := frame{step: 1, op: "ping", zxid: "+1"}, frame{op: "event"}
	whole := transcript{{reply, event}, {reply}}
	for _, less := range []transcript{{{reply}, {reply}}, {{event, reply}, {reply}}, {{reply, event}}, {{reply, event}, {}}, nil} {
		if compare(whole, less, nil) == nil || compare(less, whole, nil) == nil {
			t.Errorf("%v is as good as %v", less, whole)
		}
	}
	if m := compare(whole, whole, nil); m != nil {
		t.Errorf("%+v", m)
	}
}

// The random sequences contain all operations that the embedded server knows, and every line of a
// sequence can be parsed.
func TestGenerator(t *testing.T) {
	seen := map[string]bool{}
	for n := range uint64(300) {
		lines := sequence(1, n)
		steps, err := parse(strings.Join(lines, "\n"))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range steps {
			seen[s.op] = true
			for _, sub := range s.subs {
				seen[sub.op] = true
			}
		}
		if again := sequence(1, n); !slices.Equal(lines, again) {
			t.Fatalf("seed 1, sequence %d: %q, and then %q", n, lines, again)
		}
	}
	for op := range opCodes {
		if !seen[op] && op != "deleteContainer" { // deleteContainer is an operation between servers
			t.Errorf("no %s in 300 sequences", op)
		}
	}
}

// The error for a malformed line of a script names the mistake.
func TestParseRefuses(t *testing.T) {
	for line, want := range map[string]string{
		"create ~/a":           "want a client",
		"3 create ~/a":         "want a client",
		"0":                    "want a client and an operation",
		"0 creat ~/a":          `unknown operation "creat"`,
		"0 create ~/a ~/b":     `unexpected "~/b"`,
		"0 create ~/a flags=x": "flags=x",
		"0 multi [create ~/a":  "[ without a ]",
		"0 multi create ~/a ]": "unexpected",
		`0 create "~/a`:        "invalid syntax",
	} {
		if _, err := parseStep(line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
	steps, err := parse("0 create ~/a acl=1:world")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := embedded(t, zkserver.Config{}).play(steps, parent+"/x"); err == nil || !strings.Contains(err.Error(), "no ACL") {
		t.Errorf("a bad ACL: %v", err)
	}
}
