// Mutants shows that the simulation and the tests find mistakes. For each of a list of
// bugs it runs the simulation, or the test that is named for the bug, on code that has
// the bug, and tells after how many seeds the bug was found. Nothing in the tree is
// changed.
//
//	go run ./zksynctest/simulation/planted
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

func main() {
	seeds := flag.Int("seeds", 6000, "how many seeds a bug may take to be found")
	only := flag.String("only", "", "a part of the names of the bugs to look at; all if empty")
	limit := flag.Duration("limit", 5*time.Minute, "how long a run may take")
	flag.Parse()
	if !table(*seeds, *only, *limit) {
		os.Exit(1)
	}
}

// table prints what became of each bug, and says whether all were found.
func table(seeds int, only string, limit time.Duration) bool {
	fmt.Printf("| bug | found by | seeds | how |\n|---|---|--:|---|\n")
	missed := 0
	report := func(name string, hunt func() (*find, error)) {
		if !strings.Contains(name, only) {
			return
		}
		f, err := hunt()
		if err != nil {
			missed++
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
			return
		}
		if f == nil {
			missed++
			f = &find{workload: "**nothing**"}
		}
		fmt.Printf("| %s | %s | %s | %s |\n", name, f.workload, f.seeds, f.how)
	}
	for _, b := range bugs {
		report(b.name, func() (*find, error) { return b.hunt(seeds, limit) })
	}
	for _, b := range testedBugs {
		report(b.name, func() (*find, error) { return b.hunt(limit) })
	}
	return missed == 0
}

// A find is how a bug was found.
type find struct{ workload, seeds, how string }

var (
	failed = regexp.MustCompile(`failed at seed number (\d+), with (\w+)`)
	wrong  = regexp.MustCompile(`(?m)seed \d+: +(?:[\d.]+: )?(.*)$`)
)

// run runs tests of a package on code that has the bug. It returns their output, nil
// if they pass.
func (b *bug) run(pkg string, limit time.Duration, args ...string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "zksync-mutant-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	overlay, err := b.overlay(dir)
	if err != nil {
		return nil, err
	}
	test := filepath.Join(dir, "mutant.test")
	build := exec.Command("go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", test, "./"+pkg)
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build: %w\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	run := exec.CommandContext(ctx, test, args...)
	run.Dir = pkg
	out, err := run.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("the run was not over after %v: give it more with -limit", limit)
	case !errors.As(err, &exit):
		return nil, err
	}
	return out, nil
}

var (
	skipped = regexp.MustCompile(`(?m)^ *--- SKIP`)
	said    = regexp.MustCompile(`(?m)^ +\w+_test\.go:\d+: (.*)$`)
)

// testLimit ends a test in which the bug makes something wait for ever.
const testLimit = 90 * time.Second

// hunt runs the named test on code that has the bug.
func (b *testedBug) hunt(limit time.Duration) (*find, error) {
	out, err := b.run(b.pkg, limit, "-test.run", "^"+b.test+"$", "-test.v", "-test.timeout", testLimit.String())
	if err != nil || out == nil || skipped.Match(out) {
		return nil, err
	}
	how := "the test has crashed or was not over in time"
	if m := said.FindSubmatch(out); m != nil {
		how = short(string(m[1]))
	}
	return &find{workload: b.pkg + "." + b.test, how: how}, nil
}

// hunt runs the simulation on code that has the bug.
func (b *bug) hunt(seeds int, limit time.Duration) (*find, error) {
	out, err := b.run("zksynctest/simulation", limit, "-test.run", "^TestSimulation$", "-test.v", "-brief", "-seeds", fmt.Sprint(seeds))
	if err != nil || out == nil {
		return nil, err
	}
	m := failed.FindSubmatch(out)
	if m == nil {
		return &find{"a crash", "", ""}, nil
	}
	how := ""
	if w := wrong.FindSubmatch(out); w != nil {
		how = short(string(w[1]))
	}
	return &find{workload: string(m[2]), seeds: string(m[1]), how: how}, nil
}

// short makes a finding fit a table.
func short(s string) string {
	s = strings.ReplaceAll(strings.TrimSpace(s), "|", "/")
	if cut := strings.IndexByte(s, '\n'); cut >= 0 {
		s = s[:cut]
	}
	const most = 90
	if len(s) > most {
		s = s[:most] + "..."
	}
	return cmp.Or(s, "-")
}

// overlay writes the files that differ, and which they stand for.
func (b *bug) overlay(dir string) (string, error) {
	root, err := os.Getwd()
	if err != nil {
		return "", err
	}
	texts, err := b.apply(root)
	if err != nil {
		return "", err
	}
	replace := make(map[string]string)
	for file, text := range texts {
		to := filepath.Join(dir, strings.ReplaceAll(file, "/", "-"))
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(root, file)] = to
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "overlay.json")
	return name, os.WriteFile(name, list, 0o600)
}

// apply makes the edits to what is in the files.
func (b *bug) apply(root string) (map[string]string, error) {
	texts := make(map[string]string)
	for _, e := range b.edits {
		text, ok := texts[e.file]
		if !ok {
			data, err := os.ReadFile(filepath.Join(root, e.file))
			if err != nil {
				return nil, err
			}
			text = string(data)
		}
		if n := strings.Count(text, e.from); n != 1 {
			return nil, fmt.Errorf("%s has this %d times, want once:\n%s", e.file, n, e.from)
		}
		texts[e.file] = strings.Replace(text, e.from, e.to, 1)
	}
	return texts, nil
}
