// Planted shows that the tests find mistakes: for each of a list of bugs it runs the
// enumeration, the simulation or a test on code that has the bug, and prints the test
// that found it and the number of cases or seeds. Nothing in the tree is changed.
//
//	go run ./zksynctest/simulation/planted
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

func main() {
	only := flag.String("only", "", "a part of the names of the bugs to look at; all if empty")
	every := flag.Bool("every", false, "run the enumeration and the simulation for every bug, and not only what finds it first")
	limit := flag.Duration("limit", 5*time.Minute, "how long one run may take")
	flag.Parse()
	root, err := os.Getwd()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if !table(root, *only, *every, *limit) {
		os.Exit(1)
	}
}

// table prints the result for each bug, and reports whether all bugs were found.
func table(root, only string, every bool, limit time.Duration) bool {
	fmt.Printf("| bug | found by | after | how |\n|---|---|--:|---|\n")
	missed := 0
	for _, b := range bugs {
		if !strings.Contains(b.name, only) {
			continue
		}
		finds, err := b.hunt(root, every, limit)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", b.name, err)
		}
		if len(finds) == 0 {
			missed++
			finds = []*find{{by: "**nothing**"}}
		}
		for _, f := range finds {
			fmt.Printf("| %s | %s | %s | %s |\n", b.name, f.by, f.after, f.how)
		}
	}
	if missed > 0 {
		fmt.Fprintf(os.Stderr, "%d bugs were not found\n", missed)
	}
	return missed == 0
}

// hunt runs the finders of a bug until one has found it, or, with every, all of them
// and the enumeration and the simulation in any case.
func (b *bug) hunt(root string, every bool, limit time.Duration) (finds []*find, err error) {
	dir, err := os.MkdirTemp("", "zksync-planted-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	overlay, err := b.overlay(root, dir)
	if err != nil {
		return nil, err
	}
	by := b.by
	if every {
		by = append([]finder{enumerated(), simulated()}, b.tests()...)
	}
	var failed error
	for _, f := range by {
		found, err := f.hunt(root, overlay, dir, limit)
		if err != nil {
			failed = err
			continue
		}
		if found == nil {
			continue
		}
		finds = append(finds, found)
		if !every {
			return finds, nil
		}
	}
	return finds, failed
}

// tests returns the finders that are tests.
func (b *bug) tests() (tests []finder) {
	for _, f := range b.by {
		if f.name == "test" {
			tests = append(tests, f)
		}
	}
	return tests
}
