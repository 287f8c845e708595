package main

import (
	"go/parser"
	"go/token"
	"testing"
)

// The bugs go with the code as it is: where that has changed, so must they.
func TestBugsFit(t *testing.T) {
	if len(bugs) < 15 {
		t.Errorf("%d bugs, want 15 at least", len(bugs))
	}
	seen := map[string]bool{}
	for _, b := range bugs {
		texts, err := b.apply("../..")
		if err != nil {
			t.Errorf("%s: %v", b.name, err)
		}
		for file, text := range texts {
			if _, err := parser.ParseFile(token.NewFileSet(), file, text, 0); err != nil {
				t.Errorf("%s: %v", b.name, err)
			}
		}
		if seen[b.name] {
			t.Errorf("%s is there twice", b.name)
		}
		seen[b.name] = true
	}
}
