package main

import (
	"bytes"
	"strings"
	"testing"
)

// The ledger finds orders that were lost, repeated or not settled, and accepts the repetitions that a killed consumer
// may cause. c1 and c3 live, and c2 is killed.
func TestLedger(t *testing.T) {
	for _, c := range []struct {
		name  string
		lines string // c1: ...
		left  int
		want  string // empty if all is right
	}{
		{"each once", "1 received 1, 1 acknowledged 1, 2 received 2, 2 acknowledged 2", 0, ""},
		{"again after a death", "2 received 1, 1 received 2, 1 acknowledged 2, 3 received 1, 3 acknowledged 1", 0, ""},
		{"again after a failure", "1 received 1, 3 received 2, 3 returned 2, 3 received 2, 3 acknowledged 2, 1 acknowledged 1", 0, ""},
		{"again after a lost session", "1 received 1, 3 received 2, 3 acknowledged 2, 1 lost 1, 3 received 1, 3 acknowledged 1", 0, ""},
		{"with the last breath", "2 received 1, 1 received 2, 1 acknowledged 2", 0, ""},
		{"none", "1 received 1, 1 acknowledged 1", 0, "order 2 was received 0 times and acknowledged 0 times"},
		{"twice", "1 received 1, 1 acknowledged 1, 3 received 2, 3 acknowledged 2, 3 received 1, 3 acknowledged 1", 0,
			"order 1 was received 2 times and acknowledged 2 times"},
		{"twice, once in silence", "1 received 1, 1 acknowledged 1, 3 received 2, 3 acknowledged 2, 2 received 1", 0,
			"order 1 was received 2 times and acknowledged 2 times"},
		{"given back for good", "1 received 1, 1 acknowledged 1, 3 received 2, 3 returned 2", 0,
			"order 2 was received 1 times and acknowledged 0 times"},
		{"kept in silence", "1 received 1, 3 received 2, 3 acknowledged 2", 0, "c1 does not say what it did with order 1"},
		{"left", "1 received 1, 1 acknowledged 1, 3 received 2, 3 acknowledged 2", 1, "1 orders are left"},
		{"another order", "1 received 1, 1 acknowledged 1, 3 received 2, 3 acknowledged 2, 3 received 3", 0, `c3 says "c3 received order 3"`},
		{"never had", "1 received 1, 3 acknowledged 1, 1 acknowledged 1, 3 received 2, 3 acknowledged 2", 0, `c3 says "c3 acknowledged order 1"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLedger(2, []string{"c1", "c2", "c3"})
			for line := range strings.SplitSeq(c.lines, ", ") {
				words := strings.Fields(line)
				l.enter(int(words[0][0]-'1'), "c"+words[0]+" "+words[1]+" order "+words[2])
			}
			l.kill(1)
			var out bytes.Buffer
			right := l.print(&out, c.left)
			if right != (c.want == "") || !strings.Contains(out.String(), c.want) || right != strings.Contains(out.String(), "\nOK") {
				t.Errorf("right: %v, want %q in\n%s", right, c.want, &out)
			}
		})
	}
}

// The ledger reports a run in which no consumer was killed, and a line that it cannot read.
func TestLedgerWithoutADeath(t *testing.T) {
	l := newLedger(1, []string{"c1", "c2"})
	l.enter(0, "c1 received order 1")
	l.enter(0, "c1 acknowledged order 1")
	l.enter(0, "nonsense")
	var out bytes.Buffer
	if l.print(&out, 0) || !strings.Contains(out.String(), "nobody was killed") || !strings.Contains(out.String(), `c1 says "nonsense"`) {
		t.Errorf("not seen to be wrong:\n%s", &out)
	}
}
