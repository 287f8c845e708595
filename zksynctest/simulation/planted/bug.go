package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A bug is a mistake that the project has made or could make. Edits plant the bug, and
// the finders look for it in order, until one finds it.
type bug struct {
	name  string
	edits []edit
	by    []finder
}

// An edit replaces a text that is in a file exactly once.
type edit struct{ file, from, to string }

// apply returns the edited files by their names. The error names every edit that does
// not fit the code any more.
func (b *bug) apply(root string) (map[string]string, error) {
	texts := make(map[string]string)
	var stale []error
	for _, e := range b.edits {
		text, ok := texts[e.file]
		if !ok {
			data, err := os.ReadFile(filepath.Join(root, e.file))
			if err != nil {
				stale = append(stale, err)
				continue
			}
			text = string(data)
		}
		if n := strings.Count(text, e.from); n != 1 {
			stale = append(stale, fmt.Errorf("%s has this text %d times, want once:\n%s", e.file, n, e.from))
			continue
		}
		texts[e.file] = strings.Replace(text, e.from, e.to, 1)
	}
	return texts, errors.Join(stale...)
}

// overlay writes the edited files to dir, and the file that go build reads with
// -overlay. It returns the name of the latter.
func (b *bug) overlay(root, dir string) (string, error) {
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
