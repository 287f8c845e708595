package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The bugs go with the code as it is: where that has changed, so must they.
func TestBugsFit(t *testing.T) {
	if len(bugs) < 15 {
		t.Errorf("%d bugs, want 15 at least", len(bugs))
	}
	seen := map[string]bool{}
	all := slices.Clone(bugs)
	for _, b := range testedBugs {
		all = append(all, b.bug)
		if !hasTest(t, b.pkg, b.test) {
			t.Errorf("%s: package %s has no %s", b.name, b.pkg, b.test)
		}
	}
	for _, b := range all {
		texts, err := b.apply("../../..")
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

// hasTest reports whether a package has a test of that name.
func hasTest(t *testing.T, pkg, name string) bool {
	t.Helper()
	files, err := filepath.Glob("../../../" + pkg + "/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+name+"(t *testing.T)") {
			return true
		}
	}
	return false
}
