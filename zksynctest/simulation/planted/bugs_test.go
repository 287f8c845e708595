package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"testing"
)

// TestMain has garbage collected less often: the tests parse and check hundreds of files.
func TestMain(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	os.Exit(m.Run())
}

// The edits of all planted bugs fit the code.
func TestBugsFit(t *testing.T) {
	if len(bugs) < 60 {
		t.Errorf("%d bugs, want 60 at least", len(bugs))
	}
	seen := map[string]bool{}
	for _, b := range bugs {
		for _, f := range b.tests() {
			if !hasTest(t, f) {
				t.Errorf("%s: no test of %s matches %s", b.name, f.pkg, f.args[1])
			}
		}
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

// compileStep is the distance between two bugs that TestBugsCompile compiles.
var compileStep = 1

// The code with each bug compiles. With the race detector, which has nothing to find here, every tenth bug will do.
func TestBugsCompile(t *testing.T) {
	packages := listPackages(t)
	for i, b := range bugs {
		if i%compileStep != 0 {
			continue
		}
		t.Run(b.name, func(t *testing.T) {
			texts, err := b.apply("../../..")
			if err != nil {
				t.Fatal(err)
			}
			changed := make(map[string]map[string]string) // by directory and name
			for file, text := range texts {
				dir := filepath.Dir(file)
				if changed[dir] == nil {
					changed[dir] = make(map[string]string)
				}
				changed[dir][filepath.Base(file)] = text
			}
			for dir, texts := range changed {
				if packages[dir] == nil {
					t.Fatalf("%s is no package of the module", dir)
				}
				if err := packages[dir].check(texts); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

var testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)

// hasTest reports whether the package of a finder has a test that the finder runs.
func hasTest(t *testing.T, f finder) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../../..", f.pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	pattern := regexp.MustCompile(f.args[1])
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range testFunc.FindAllSubmatch(text, -1) {
			if pattern.Match(m[1]) {
				return true
			}
		}
	}
	return false
}
