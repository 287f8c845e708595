//go:build unix

package chaos

import (
	"strings"
	"testing"
)

// The comparison finds notes that break a rule, and accepts notes that only look wrong.
func TestJudge(t *testing.T) {
	hold := func(what string, hold, units int, token, from, to int64) []note {
		return []note{
			{At: from, Kind: held, What: what, Hold: hold, Units: units, Token: token},
			{At: to, Kind: ended, What: what, Hold: hold, Units: units, Token: token},
		}
	}
	queue := func(notes ...note) []note {
		for i := range notes {
			notes[i].At = int64(i + 1)
		}
		return notes
	}
	sent := queue(note{Kind: trying, Text: "m"}, note{Kind: put, Text: "m"})
	a := func(notes ...note) diary { return diary{client: "a", notes: notes} }
	b := func(notes ...note) diary { return diary{client: "b", notes: notes} }
	killed := func(d diary) diary { d.killed = true; return d }
	paused := func(d diary) diary { d.paused = true; return d }
	for _, c := range []struct {
		name    string
		diaries []diary
		want    string // empty for nothing wrong
	}{
		{"one after the other", []diary{a(hold("lock", 1, 1, 10, 1, 5)...), b(hold("lock", 1, 1, 11, 6, 9)...)}, ""},
		{"two at once", []diary{a(hold("lock", 1, 1, 10, 1, 5)...), b(hold("lock", 1, 1, 11, 4, 9)...)}, "2 of 1 are held at once"},
		{"one within a longer one", []diary{a(hold("election", 1, 1, 10, 1, 50)...), b(hold("election", 1, 1, 11, 4, 9)...)}, "held at once"},
		{"a killed one without an end", []diary{killed(a(hold("lock", 1, 1, 10, 1, 5)[0])), b(hold("lock", 1, 1, 11, 4, 9)...)}, ""},
		{"its last sign of life counts", []diary{killed(a(hold("lock", 1, 1, 10, 1, 5)[0], note{Kind: still, Hold: 1, At: 5})), b(hold("lock", 1, 1, 11, 4, 9)...)}, "held at once"},
		{"three units of three", []diary{a(hold("semaphore", 1, 2, 10, 1, 5)...), b(hold("semaphore", 1, 1, 11, 2, 9)...)}, ""},
		{"four units of three", []diary{a(hold("semaphore", 1, 2, 10, 1, 5)...), b(hold("semaphore", 1, 2, 11, 2, 9)...)}, "4 of 3"},
		{"readers coexist", []diary{a(hold("rwlock", 1, 1, 10, 1, 5)...), b(hold("rwlock", 1, 1, 9, 2, 9)...)}, ""},
		{"a writer beside a reader", []diary{a(hold("rwlock", 1, 1, 10, 1, 5)...), b(hold("rwlock", 1, 1000, 11, 2, 9)...)}, "held at once"},
		{"a token goes back", []diary{a(hold("lock", 1, 1, 10, 1, 5)...), b(hold("lock", 1, 1, 9, 6, 9)...)}, "the token went back"},
		{"a token is that of another", []diary{a(hold("lock", 1, 1, 10, 1, 5)...), b(hold("lock", 1, 1, 10, 6, 9)...)}, "the token went back"},
		{"a token is handed on", []diary{a(append(hold("lock", 1, 1, 10, 1, 5), hold("lock", 2, 1, 10, 6, 9)...)...)}, ""},
		{"a reader is older than a writer before it", []diary{a(hold("rwlock", 1, 1000, 10, 1, 5)...), b(hold("rwlock", 1, 1, 9, 6, 9)...)}, "the token went back"},
		{"a writer is older than a reader before it", []diary{a(hold("rwlock", 1, 1, 10, 1, 5)...), b(hold("rwlock", 1, 1000, 9, 6, 9)...)}, "the token went back"},
		{"put, received, acknowledged", []diary{a(sent...), b(queue(note{Kind: got, Text: "m"}, note{Kind: acked, Text: "m"})...)}, ""},
		{"lost", []diary{a(sent...)}, "is lost"},
		{"received, and given back", []diary{a(sent...), b(queue(note{Kind: got, Text: "m"}, note{Kind: unacked, Text: "m given back"})...)}, "is lost"},
		{"received, and perhaps acknowledged", []diary{a(sent...), b(queue(note{Kind: got, Text: "m"}, note{Kind: unacked, Text: "m late", Units: open})...)}, ""},
		{"received, and no more", []diary{a(sent...), b(queue(note{Kind: got, Text: "m"})...)}, "is lost"},
		{"never put", []diary{b(queue(note{Kind: got, Text: "m"}, note{Kind: acked, Text: "m"})...)}, "nobody put it"},
		{"refused, and received", []diary{a(queue(note{Kind: trying, Text: "m"}, note{Kind: unput, Text: "m no"})...), b(queue(note{Kind: got, Text: "m"}, note{Kind: acked, Text: "m"})...)}, "though Put had said"},
		{"unknown, and received", []diary{a(queue(note{Kind: trying, Text: "m"}, note{Kind: unput, Text: "m no", Units: open})...), b(queue(note{Kind: got, Text: "m"}, note{Kind: acked, Text: "m"})...)}, ""},
		{"twice without a reason", []diary{a(sent...), b(queue(note{Kind: got, Text: "m"}, note{Kind: got, Text: "m"}, note{Kind: acked, Text: "m"})...)}, "nothing had happened to the first"},
		{"twice, given back", []diary{a(sent...), b(queue(note{Kind: got, Text: "m"}, note{Kind: unacked, Text: "m given back"}, note{Kind: got, Text: "m"}, note{Kind: acked, Text: "m"})...)}, ""},
		{"twice, after a crash", []diary{killed(a(append(sent, note{Kind: got, Text: "m", At: 3})...)), b(note{Kind: got, Text: "m", At: 4}, note{Kind: acked, Text: "m", At: 5})}, ""},
		{"after it was acknowledged", []diary{a(append(sent, note{Kind: got, Text: "m", At: 3}, note{Kind: acked, Text: "m", At: 4})...), b(note{Kind: got, Text: "m", At: 5}, note{Kind: unacked, Text: "m lost", At: 6})}, "had acknowledged it"},
		{"after it was acknowledged, to one that stood still", []diary{a(append(sent, note{Kind: got, Text: "m", At: 3}, note{Kind: acked, Text: "m", At: 4})...), paused(b(note{Kind: got, Text: "m", At: 5}, note{Kind: unacked, Text: "m lost", At: 6}))}, ""},
		{"and acknowledged by that one", []diary{a(append(sent, note{Kind: got, Text: "m", At: 3}, note{Kind: acked, Text: "m", At: 4})...), paused(b(note{Kind: got, Text: "m", At: 5}, note{Kind: acked, Text: "m", At: 6}))}, "had acknowledged it"},
		{"acknowledged twice", []diary{killed(a(append(sent, note{Kind: got, Text: "m", At: 3}, note{Kind: acked, Text: "m", At: 9})...)), b(note{Kind: got, Text: "m", At: 5}, note{Kind: acked, Text: "m", At: 6})}, "acknowledged 2 times"},
		{"an error", []diary{a(note{Kind: failed, What: "lock", Text: "it fell"})}, "it fell"},
	} {
		wrong := strings.Join(judge(c.diaries), "\n")
		if c.want == "" && wrong != "" || !strings.Contains(wrong, c.want) {
			t.Errorf("%s: found %q, want %q", c.name, wrong, c.want)
		}
	}
}
