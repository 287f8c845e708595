package differential

import (
	"strings"
	"testing"
	"time"
)

// script is a sequence of requests with a name that states its subject.
type script struct {
	name  string
	lines string
}

// scripts returns all scripts.
func scripts() []script {
	var all []script
	for _, group := range [][]script{
		createScripts, deleteScripts, dataScripts, pathScripts, aclScripts, multiScripts,
		watchScripts, persistentScripts, setWatchesScripts, sessionScripts, frameScripts,
		quotaScripts,
	} {
		all = append(all, group...)
	}
	return all
}

// Each script has the same results, error codes, zxids, Stats and events, in the same order, as on a
// real server.
func TestScripts(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	t.Run("differences between releases", p.testVersionDifferences)
	seen := map[string]bool{}
	for _, s := range scripts() {
		if seen[s.name] {
			t.Errorf("two scripts are called %q", s.name)
		}
		seen[s.name] = true
		t.Run(s.name, func(t *testing.T) {
			steps, err := parse(s.lines)
			if err != nil {
				t.Fatal(err)
			}
			p.try(t, steps)
		})
	}
}

// minimiseTime bounds the search for a shorter sequence: each step of the search takes long if a
// server is silent.
const minimiseTime = time.Minute

// try reports the shortest sequence whose answers differ, if they differ.
func (p *pair) try(t *testing.T, steps []step) (excused *versionDifference, ok bool) {
	t.Helper()
	difference, excused, err := p.play(steps)
	if err != nil {
		p.difference = err.Error()
		t.Errorf("%v, in\n%s", err, text(steps))
		return nil, false
	}
	if difference == "" {
		return excused, true
	}
	// The threads of a real server may carry requests of two clients out in either order. If
	// it answers the same sequence in another way now, and the embedded server agrees, then the
	// sequence does not determine the answers.
	earlier := p.answers
	if again, _, err := p.play(steps); err == nil && again == "" && compare(earlier, p.answers, nil) != nil {
		t.Logf("%s answers in two ways to\n%s%s", p.real.name, text(steps), difference)
		return nil, true
	}
	until := time.Now().Add(minimiseTime)
	few := minimise(steps, func(fewer []step) bool {
		if time.Now().After(until) {
			return false
		}
		d, _, err := p.play(fewer)
		return err == nil && d != ""
	})
	if again, _, _ := p.play(few); again != "" {
		difference = again
	}
	p.difference = difference
	t.Errorf("what the servers answer to\n%s\ndiffers %s", text(few), difference)
	return nil, false
}

func text(steps []step) string {
	var b strings.Builder
	for _, s := range steps {
		b.WriteString("\t" + s.line + "\n")
	}
	return b.String()
}
