package english

import (
	"strings"
	"testing"
)

// Clauses counts relative and interrogative clauses without a noun, and no clause that has its noun.
func TestClauses(t *testing.T) {
	for _, c := range []struct {
		text string
		want int
	}{
		// The noun is missing.
		{"Who waits is told of the loss.", 1},
		{"It is for whoever comes late.", 1},
		{"Whichever came first counts.", 1},
		{"It returns, whatever the cause is.", 1},
		{"settle lets those go who wait for nothing any more", 1},
		{"What is there is left alone.", 1},
		{"It returns what was read.", 1},
		{"The list differs from what it claims.", 1},
		{"A pump is what delivers messages.", 1},
		{"A state is what a read has found.", 1},
		{"It holds a report of what it has done.", 1},
		{"It tells from what it reads whether to stop.", 1},
		{"It reports errors and what was read.", 1},
		{"It tells the caller. What follows is skipped.", 1},
		{"It checks who waits.", 0},
		{"It is up to who waits.", 1},

		// A pronoun stands in place of the noun.
		{"Those that wait are told.", 1},
		{"It wakes those who wait and\nthe one that holds.", 2},
		{"He who waits goes on.", 1},
		{"It takes all that is left, and all who wait.", 2},
		{"That is all there is.", 1},
		{"It drops all it has, and those it has seen.", 2},
		{"One that fails is repeated.", 1},
		{"nobody who waits", 1},
		{"others that wait", 1},
		{"It is shared with everybody else who waits.", 1},
		{"the first that comes", 1},
		{"Those to whom it belongs are told.", 1},
		{"Those whose session ended are gone.", 1},
		{"The name is that of the head.", 1},
		{"Names are those of Curator.", 1},

		// The clause has its noun.
		{"Callers who wait are told, and the session that created it ends.", 0},
		{"It tells callers, who wait, of the loss.", 0},
		{"The client of which it is a part, and the server on whose disk it is.", 0},
		{"A Take whose ctx ends is withdrawn.", 0},
		{"Callers who wait and who hold are told.", 0},
		{"everything that it has", 0},
		{"There are three servers, one of which leads.", 0},

		// The clause is a question.
		{"It reports what failed, says why, and tells which server refused.", 0},
		{"It tells the caller what failed.", 0},
		{"It says who holds it and what it waits for.", 0},
		{"It shows who holds what.", 0},
		{"It is not known what came of it.", 0},
		{"The result depends on who was first.", 0},
		{"It finds out what happened, regardless of who asks.", 0},
		{"It holds no matter who asks.", 0},
		{"The text is needed to say what to do.", 0},
		{"What happens when the leader pauses?", 0},

		// Other uses of the same words.
		{"The other is gone. Each of those is closed.", 0},
		{"It says that it failed, so that the caller stops.", 0},
		{"It reports that those are gone, and tells them that they may go on.", 0},
		{"After all that, no session is left.", 0},
		{"They tell each other that they wait.", 0},
		{`style.md forbids "who waits" and "those that".`, 0},
		{"`what` is a word.", 0},
	} {
		var lines []Line
		for i, line := range strings.Split(c.text, "\n") {
			lines = append(lines, Line{i + 1, line})
		}
		if _, found := Clauses(lines); len(found) != c.want {
			t.Errorf("%q has %d clauses, want %d: %v", c.text, len(found), c.want, found)
		}
	}
}

// A clause is reported with the line of its first word and the words around it, and numbers are no words.
func TestClausesHavePlaces(t *testing.T) {
	count, found := Clauses([]Line{{7, "After 3 minutes it returns"}, {8, "what it has read so far, and more."}})
	want := Clause{8, "3 minutes it returns what it has read so far"}
	if count != 12 || len(found) != 1 || found[0] != want {
		t.Errorf("%d words, %+v, want 12 and %+v", count, found, want)
	}
}
