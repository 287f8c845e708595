package english

import (
	"strings"
	"testing"
)

// The prose of a Go file is its comments without directives, code, headings and outputs of examples.
func TestComments(t *testing.T) {
	const source = `// Package p does it.
//
//	what is code
//
// # Who reads
package p

//go:noinline
func f() {} // who calls

/* What is
left */
var s = "// who is a string"

func ExampleF() {
	// Output:
	// who prints
}
`
	texts, err := Comments("p.go", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, text := range texts {
		var words []string
		for _, line := range text {
			words = append(words, strings.Fields(line.Text)...)
		}
		got = append(got, strings.Join(words, " "))
	}
	want := "Package p does it. . . . .; who calls; What is left"
	if strings.Join(got, "; ") != want {
		t.Errorf("prose %q, want %q", got, want)
	}
	if texts[2][1].Number != 12 {
		t.Errorf("%q is on line %d, want 12", texts[2][1].Text, texts[2][1].Number)
	}
}

// The prose of a document leaves out code, headings and the addresses of links, and keeps the numbers of lines.
func TestMarkdown(t *testing.T) {
	const source = "# What it does\n\n```sh\nwhat is code\n```\n- Ask [whoever](who.md) and `what`.\n- What is\n  there.\n"
	c := Document("page.md", source)
	if len(c.Clauses) != 2 || !strings.HasPrefix(c.Clauses[1], "page.md:7: ") {
		t.Errorf("clauses %q, want two, the second in line 7", c.Clauses)
	}
}
