package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// A finder is a test that can find bugs.
type finder struct {
	name string // the kind of the finder: simulation, enumeration or test
	pkg  string
	args []string // of the test binary
	// found reads what found the bug and how from the output of a failed run.
	found func(out []byte) (by, after, how string)
}

// simulated finds a bug by the random simulation, with some workloads or all.
func simulated(workloads ...string) finder {
	args := []string{"-test.run", "^TestSimulation$", "-test.v", "-brief", "-seeds", "6000"}
	if len(workloads) > 0 {
		args = append(args, "-workload", strings.Join(workloads, ","))
	}
	return finder{"simulation", "./zksynctest/simulation", args, foundBySimulation}
}

// simulatedWatch finds a bug by the random simulation of package watch.
func simulatedWatch() finder {
	f := simulated()
	f.pkg = "./watch"
	return f
}

// enumerated finds a bug by the enumeration of single faults, in some scenarios or all.
func enumerated(scenarios ...string) finder { return enumeratedIn("usual", scenarios...) }

// enumeratedIn finds a bug by the enumeration in a world.
func enumeratedIn(world string, scenarios ...string) finder {
	args := []string{"-test.run", "^TestEnumeration$", "-test.v", "-brief", "-cases", "all", "-world", world}
	if len(scenarios) > 0 {
		args = append(args, "-scenario", strings.Join(scenarios, ","))
	}
	return finder{"enumeration", "./zksynctest/simulation/enumeration", args, foundByEnumeration}
}

// tested finds a bug by the tests of a package whose names match a pattern, with further
// arguments.
func tested(pkg, pattern string, args ...string) finder {
	return finder{"test", pkg, append([]string{"-test.run", pattern, "-test.timeout", "2m"}, args...), foundByTest}
}

// A find is how a bug was found.
type find struct{ kind, by, after, how string }

// hunt runs the finder on code that has the bug. It returns nil if nothing was found.
func (f finder) hunt(root, overlay, dir string, limit time.Duration) (*find, error) {
	test := filepath.Join(dir, f.name+".test")
	build := exec.Command("go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", test, f.pkg)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build: %w\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	run := exec.CommandContext(ctx, test, f.args...)
	run.Dir = filepath.Join(root, f.pkg)
	run.Env = append(os.Environ(), "ZKSYNC_LONG=1") // the tests in their full sizes
	out, err := run.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("the %s has not ended after %v: raise -limit", f.name, limit)
	case !errors.As(err, &exit):
		return nil, err
	case bytes.Contains(out, []byte("panic: test timed out")) && !testFailed.Match(out):
		// The machine may be too busy for tests that find nothing.
		return nil, fmt.Errorf("the %s has not ended in its time, and nothing has failed", f.name)
	}
	by, after, how := f.found(out)
	return &find{f.name, by, after, short(how)}, nil
}

var (
	seedFailed  = regexp.MustCompile(`failed at seed number (\d+), with (\w+)`)
	seedHow     = regexp.MustCompile(`(?m)seed \d+: +(?:[\d.]+: )?(.*)$`)
	caseFailed  = regexp.MustCompile(`failed at case number (\d+): (\S+): (.*)`)
	testFailed  = regexp.MustCompile(`--- FAIL: ([^\s:]+)`)
	testHung    = regexp.MustCompile(`--- FAIL: \S+: (the test has not ended .*?)\. The goroutines`) // see internal/bounds
	testHow     = regexp.MustCompile(`(?m)^ +\w+_test\.go:\d+: (.*)$`)
	testCrashed = regexp.MustCompile(`(?m)^(?:panic|fatal error): (.*)$`)
)

func foundBySimulation(out []byte) (by, after, how string) {
	m := seedFailed.FindSubmatch(out)
	if m == nil {
		return "simulation", "", crash(out)
	}
	if h := seedHow.FindSubmatch(out); h != nil {
		how = string(h[1])
	}
	return "simulation, " + string(m[2]), string(m[1]) + " seeds", how
}

func foundByEnumeration(out []byte) (by, after, how string) {
	m := caseFailed.FindSubmatch(out)
	if m == nil {
		return "enumeration", "", crash(out)
	}
	return "enumeration, " + string(m[2]), string(m[1]) + " cases", string(m[3])
}

func foundByTest(out []byte) (by, after, how string) {
	by = "test"
	if m := testFailed.FindSubmatch(out); m != nil {
		by = string(m[1])
	}
	if h := testHow.FindSubmatch(out); h != nil && !bytes.Contains(out, []byte("panic: ")) {
		return by, "", string(h[1])
	}
	return by, "", crash(out)
}

// crash returns how a test binary has crashed.
func crash(out []byte) string {
	if m := testCrashed.FindSubmatch(out); m != nil {
		return string(m[1])
	}
	if m := testHung.FindSubmatch(out); m != nil {
		return string(m[1])
	}
	return "the test has failed"
}

// short makes an output fit a table, as Markdown's code, and takes Markdown links apart.
func short(s string) string {
	s = strings.NewReplacer("|", "/", "](", "] (", "`", "'").Replace(strings.TrimSpace(s))
	s, _, _ = strings.Cut(s, "\n")
	const most = 100
	if len(s) > most {
		s = s[:most] + "..."
	}
	return "`" + cmp.Or(s, "-") + "`"
}
