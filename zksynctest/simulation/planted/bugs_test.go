package main

import (
	"flag"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

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

var built = flag.Int("build", 5, "how many of the bugs TestBugsBuild builds, from the first; 0 is all, which takes minutes")

// The code with each bug builds.
func TestBugsBuild(t *testing.T) {
	some := bugs
	if *built > 0 {
		some = bugs[:min(*built, len(bugs))]
	}
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range some {
		t.Run(b.name, func(t *testing.T) {
			overlay, err := b.overlay(root, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			build := exec.Command("go", "build", "-overlay", overlay)
			for _, e := range b.edits {
				if pkg := "./" + filepath.Dir(e.file); !slices.Contains(build.Args, pkg) {
					build.Args = append(build.Args, pkg)
				}
			}
			build.Dir = root
			if out, err := build.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
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
