package session

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

// servers holds the servers of the connection string. The next attempt goes to the server
// that failed longest ago, so a dead server is tried last.
type servers struct {
	mu    sync.Mutex
	all   []string
	turn  uint64
	tries map[string]*tries // of each server
}

// tries is the record of one server. The other fields count since a connection was last in use.
type tries struct {
	turn     uint64 // the number of the attempt at which the server failed last; 0 if never
	failures int
	err      error     // of the newest failure
	mistake  *mistake  // the mistake behind err; nil if err may be an accident
	probed   bool      // a probe has found mistake
	asked    time.Time // when the unanswered handshake was sent; zero if there is none
}

func newServers(addresses []string) *servers {
	// The clients with one connection string must not all use its first server.
	all := slices.Clone(addresses)
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	v := &servers{all: all, tries: make(map[string]*tries)}
	for _, a := range all {
		v.tries[a] = &tries{}
	}
	return v
}

func (v *servers) next() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	// A server that never failed has the turn 0, and so goes before every other server.
	return slices.MinFunc(v.all, func(a, b string) int { return cmp.Compare(v.tries[a].turn, v.tries[b].turn) })
}

// asking records that a handshake with the server has begun.
func (v *servers) asking(server string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.tries[server].asked = time.Now()
}

// failed records a failure. It returns the mistake behind the failure if the mistake is
// new.
func (v *servers) failed(server string, err error) (found *mistake) {
	// Without mu, because the method Error may belong to the program's dialer.
	mistake := mistakeOf(err)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.turn++
	t := v.tries[server]
	if mistake != nil && (t.mistake == nil || t.mistake.hint != mistake.hint) {
		found = mistake
	}
	if t.probed && isSilent(err) {
		mistake = t.mistake // err shows less than the probe did
	} else {
		t.probed = false
	}
	t.failures++
	t.turn, t.err, t.mistake, t.asked = v.turn, err, mistake, time.Time{}
	return found
}

// explain records the mistake that a probe has found behind the failures of a server.
func (v *servers) explain(server string, m *mistake) {
	v.mu.Lock()
	defer v.mu.Unlock()
	t := v.tries[server]
	t.mistake, t.probed = m, true
}

// working records that a connection is in use, and so deletes the earlier failures.
func (v *servers) working() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, t := range v.tries {
		*t = tries{turn: t.turn}
	}
}

// mistaken reports whether every server has failed because of a mistake that waiting does
// not remove.
func (v *servers) mistaken() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, a := range v.all {
		if t := v.tries[a]; t.mistake == nil || !t.mistake.lasting {
			return false
		}
	}
	return true
}

// unexplained returns the servers that accept connections and do not show why they cannot
// be used.
func (v *servers) unexplained() (list []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, a := range v.all {
		t := v.tries[a]
		switch {
		// A server that was not tried may work.
		case t.failures == 0 && t.asked.IsZero():
			return nil
		case t.mistake != nil && t.mistake.lasting:
		case !t.asked.IsZero() || isSilent(t.err):
			list = append(list, a)
		}
	}
	return list
}

// report returns a line for each server with the outcome of the attempts, and the newest error of
// each server that has one.
func (v *servers) report() (lines []string, errs []error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, a := range v.all {
		t := v.tries[a]
		lines = append(lines, a+": "+t.String())
		if t.err != nil {
			errs = append(errs, t.err)
		}
	}
	return lines, errs
}

func (t *tries) String() string {
	var parts []string
	if t.err != nil {
		parts = append(parts, t.err.Error())
	}
	if t.failures > 1 {
		// A failure sets err as well, so parts has an element.
		parts[0] += fmt.Sprintf(" (%d attempts)", t.failures)
	}
	if !t.asked.IsZero() {
		parts = append(parts, fmt.Sprintf("the handshake is unanswered for %v", roundTime(time.Since(t.asked))))
	}
	if t.mistake != nil {
		parts = append(parts, "hint: "+t.mistake.hint)
	}
	if len(parts) == 0 {
		return "not tried yet"
	}
	return strings.Join(parts, "; ")
}
