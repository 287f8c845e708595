package main

import (
	"strings"
	"testing"
)

// Every test of the module states what it proves in the first line of its comment.
func TestEveryTestStatesItsPromise(t *testing.T) {
	found, err := read("../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(found["session"]) < 100 {
		t.Fatalf("%d tests found in session, want all", len(found["session"]))
	}
	for pkg, list := range found {
		for _, p := range list {
			if p.text == "" {
				t.Errorf("%s of %s has no comment: state in one sentence what it proves", p.test, pkg)
			}
		}
	}
}

// The list has a heading for each package and a line for each test.
func TestListOfPromises(t *testing.T) {
	var out strings.Builder
	err := write(&out, map[string][]promise{
		"b": {{"TestOne", "One holds."}},
		"a": {{"TestTwo", "Two holds."}, {"TestZ", ""}},
	})
	want := "## a\n\n- `TestTwo`: Two holds.\n- `TestZ`: \n\n## b\n\n- `TestOne`: One holds.\n\n"
	if err != nil || out.String() != want {
		t.Errorf("%v, list %q, want %q", err, out.String(), want)
	}
}
