package main

import (
	"strings"
	"testing"
	"time"
)

// The judge finds each overlap of holds, each token that does not grow, each wrong refusal and each lost update.
func TestJudge(t *testing.T) {
	start := time.Now()
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	had := func(worker string, token int64, from, until int) span {
		return span{worker: worker, token: token, from: at(from), until: at(until)}
	}
	forced := had("w1", 5, 0, 100)
	forced.lost, forced.revoked = true, at(80)

	for name, c := range map[string]struct {
		spans []span
		past  history
		want  string // in the list of broken promises; empty if there are none
	}{
		"nothing happened":    {},
		"one after the other": {spans: []span{had("w1", 5, 0, 10), had("w2", 6, 10, 20)}},
		"in any order":        {spans: []span{had("w2", 6, 10, 20), had("w1", 5, 0, 10)}},
		"overlap":             {spans: []span{had("w1", 5, 0, 11), had("w2", 6, 10, 20)}, want: "w1 (token 5) had the lock for 1ms more when w2 (token 6) got it"},
		"overlap not with the one before": {
			spans: []span{had("w1", 5, 0, 100), had("w2", 6, 10, 20), had("w3", 7, 30, 40)},
			want:  "w1 (token 5) had the lock for 70ms more when w3",
		},
		"overlap with itself":      {spans: []span{had("w1", 5, 0, 11), had("w1", 6, 10, 20)}, want: "w1 (token 5)"},
		"expired by force":         {spans: []span{forced, had("w2", 6, 81, 120)}},
		"overlap before the force": {spans: []span{forced, had("w2", 6, 79, 120)}, want: "had the lock for 1ms more"},
		"tokens go back":           {spans: []span{had("w1", 6, 0, 10), had("w2", 5, 10, 20)}, want: "tokens must grow"},
		"a token twice":            {spans: []span{had("w1", 6, 0, 10), had("w2", 6, 10, 20)}, want: "tokens must grow"},
		"late write refused": {
			spans: []span{had("w1", 5, 0, 10)},
			past:  history{refusals: []refusal{{worker: "w1", token: 5, at: at(20), late: true}}},
		},
		"late write accepted": {past: history{value: 1, writes: 1, late: 1}, want: "took 1 writes with an old token"},
		"refused with the lock in hand": {
			spans: []span{had("w1", 5, 0, 10)},
			past:  history{refusals: []refusal{{worker: "w1", token: 5, at: at(5)}}},
			want:  "w1 was refused with token 5",
		},
		"refused after the force": {
			spans: []span{forced, had("w2", 6, 81, 120)},
			past:  history{refusals: []refusal{{worker: "w1", token: 5, at: at(90)}}},
		},
		"refused before the force": {
			spans: []span{forced},
			past:  history{refusals: []refusal{{worker: "w1", token: 5, at: at(70)}}},
			want:  "w1 was refused with token 5",
		},
		"an update was lost": {past: history{value: 6, writes: 7}, want: "the number is 6 after 7 writes"},
	} {
		t.Run(name, func(t *testing.T) {
			v := judge(c.spans, c.past)
			wrong := strings.Join(v.wrong, "; ")
			if c.want == "" && !v.ok() {
				t.Errorf("broken promises: %s", wrong)
			}
			if c.want != "" && (v.ok() || !strings.Contains(wrong, c.want)) {
				t.Errorf("broken promises: %q, want %q", wrong, c.want)
			}
		})
	}
}
