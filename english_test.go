package toolkit

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-zksync/toolkit/internal/english"
)

// maxHeadless is how many headless clauses 1,000 words may contain.
const maxHeadless = 2.0

// headlessToday has the measured rates above maxHeadless. A rate in this table may only go down: lower it when the test
// says so. The entries are to disappear, and then the table.
var headlessToday = map[string]float64{
	"docs/planted-bugs.md": 12.5, // make mutants writes this page from the names of the bugs in the code
}

// objections says which counts are above their ceilings, and which ceilings are out of date.
func objections(counts map[string]*english.Count, ceilings map[string]float64) (wrong []string) {
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		c := counts[name]
		has := fmt.Sprintf("%s has %.1f headless clauses per 1,000 words", name, c.Rate())
		ceiling, listed := ceilings[name]
		if !listed {
			ceiling = maxHeadless
		}
		switch {
		case c.Rate() > ceiling+0.05: // the table has one decimal place
			wrong = append(wrong, fmt.Sprintf("%s, want at most %.1f. Give each clause its noun:\n%s", has, ceiling, strings.Join(c.Clauses, "\n")))
		case listed && c.Rate() <= maxHeadless:
			wrong = append(wrong, has+": remove it from headlessToday")
		case listed && c.Rate() < ceiling-1:
			wrong = append(wrong, fmt.Sprintf("%s: lower its ceiling in headlessToday from %.1f", has, ceiling))
		}
	}
	return wrong
}

// checkEnglish logs the counts as a table, and reports each objection. The documents in headlessToday end with .md.
func checkEnglish(t *testing.T, title string, counts map[string]*english.Count) {
	t.Helper()
	var table strings.Builder
	english.Write(&table, title, counts)
	t.Logf("headless clauses per 1,000 words:\n%s", table.String())
	for _, wrong := range objections(counts, headlessToday) {
		t.Error(wrong)
	}
	for name := range headlessToday {
		if counts[name] == nil && strings.HasSuffix(name, ".md") == (title == "document") {
			t.Errorf("there is no %s %s: remove it from headlessToday", title, name)
		}
	}
}

// The comments of a package have at most 2 headless clauses per 1,000 words. A headless clause is a relative or
// interrogative clause whose noun is missing or is a pronoun. [english.Clauses] states the patterns.
func TestCommentsNameTheirSubjects(t *testing.T) {
	counts, err := english.Packages(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range []string{".", "session", "watch", "zksync", "zksynctest/zkserver", "examples/bench"} {
		if counts[pkg] == nil {
			t.Errorf("no comments of package %s were found: this test looks at the wrong place", pkg)
		}
	}
	checkEnglish(t, "package", counts)
}

// The documents have at most 2 headless clauses per 1,000 words.
func TestDocumentsNameTheirSubjects(t *testing.T) {
	counts := make(map[string]*english.Count)
	for _, name := range documents(t) {
		counts[name] = english.Document(name, readDocument(t, name))
	}
	checkEnglish(t, "document", counts)
}

// A count above its ceiling is reported with the place of each clause, and so is a ceiling that is too high.
func TestObjectionsToEnglish(t *testing.T) {
	of := func(clauses int) *english.Count {
		return &english.Count{Words: 1000, Clauses: slices.Repeat([]string{"a.go:3: who waits"}, clauses)}
	}
	for _, c := range []struct {
		clauses  int
		ceilings map[string]float64
		want     string
	}{
		{2, nil, ""},
		{3, nil, "a has 3.0 headless clauses per 1,000 words, want at most 2.0. Give each clause its noun:\na.go:3: who waits\n"},
		{8, map[string]float64{"a": 8}, ""},
		{9, map[string]float64{"a": 8}, "want at most 8.0"},
		{7, map[string]float64{"a": 8}, ""},
		{6, map[string]float64{"a": 8}, "lower its ceiling in headlessToday from 8.0"},
		{2, map[string]float64{"a": 2.5}, "remove it"},
	} {
		wrong := strings.Join(objections(map[string]*english.Count{"a": of(c.clauses)}, c.ceilings), "; ")
		if c.want == "" && wrong != "" || !strings.Contains(wrong, c.want) {
			t.Errorf("%d clauses, ceilings %v: %q, want %q", c.clauses, c.ceilings, wrong, c.want)
		}
	}
}
