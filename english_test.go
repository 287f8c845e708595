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

// objections returns a text for each count above maxHeadless.
func objections(counts map[string]*english.Count) (wrong []string) {
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if c := counts[name]; c.Rate() > maxHeadless {
			wrong = append(wrong, fmt.Sprintf("%s has %.1f headless clauses per 1,000 words, want at most %.1f. Give each clause its noun:\n%s",
				name, c.Rate(), maxHeadless, strings.Join(c.Clauses, "\n")))
		}
	}
	return wrong
}

// checkEnglish logs the counts as a table, and reports each objection.
func checkEnglish(t *testing.T, title string, counts map[string]*english.Count) {
	t.Helper()
	var table strings.Builder
	english.Write(&table, title, counts)
	t.Logf("headless clauses per 1,000 words:\n%s", table.String())
	for _, wrong := range objections(counts) {
		t.Error(wrong)
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

// A count above the limit is reported with the place of each clause.
func TestObjectionsToEnglish(t *testing.T) {
	for clauses, want := range map[int]string{
		2: "",
		3: "a has 3.0 headless clauses per 1,000 words, want at most 2.0. Give each clause its noun:\na.go:3: who waits\n",
	} {
		counts := map[string]*english.Count{"a": {Words: 1000, Clauses: slices.Repeat([]string{"a.go:3: who waits"}, clauses)}}
		wrong := strings.Join(objections(counts), "; ")
		if want == "" && wrong != "" || !strings.Contains(wrong, want) {
			t.Errorf("%d clauses: %q, want %q", clauses, wrong, want)
		}
	}
}
