package toolkit

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// maxCycle is the greatest number of files of a package that may depend on each other.
const maxCycle = 8

// A package can be read in an order in which each file uses the types and functions of
// files before it, up to cycles of a few files.
func TestCyclesOfFilesAreSmall(t *testing.T) {
	dirs := make(map[string][]string)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			dirs[filepath.Dir(path)] = append(dirs[filepath.Dir(path)], path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	largest := 0
	for dir, files := range dirs {
		for _, cycle := range cycles(fileUses(t, files)) {
			if largest = max(largest, len(cycle)); len(cycle) > maxCycle {
				t.Errorf("%s: %d files depend on each other, want at most %d: %s", dir, len(cycle), maxCycle, strings.Join(cycle, " "))
			}
		}
	}
	t.Logf("the largest cycle has %d files", largest)
}

// fileUses returns, for each file of a package, the files that declare the identifiers of
// package scope which it uses.
func fileUses(t *testing.T, files []string) map[string][]string {
	parsed, declaredIn := make(map[string]*ast.File), make(map[string]string)
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		parsed[name] = f
		for _, d := range f.Decls {
			for _, id := range declared(d) {
				declaredIn[id.Name] = name
			}
		}
	}
	uses := make(map[string][]string)
	for name, f := range parsed {
		// The parser resolves the identifiers that are declared in the same file.
		for _, id := range f.Unresolved {
			if other := declaredIn[id.Name]; other != "" && other != name {
				uses[name] = append(uses[name], other)
			}
		}
	}
	return uses
}

// declared returns the identifiers that a declaration adds to the scope of the package.
func declared(d ast.Decl) (ids []*ast.Ident) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			ids = append(ids, d.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				ids = append(ids, s.Name)
			case *ast.ValueSpec:
				ids = append(ids, s.Names...)
			}
		}
	}
	return ids
}

// cycles returns the groups of nodes of a graph that reach each other.
func cycles(edges map[string][]string) (all [][]string) {
	reach := make(map[string]map[string]bool)
	for from := range edges {
		reach[from] = make(map[string]bool)
		for open := edges[from]; len(open) > 0; open = open[1:] {
			if to := open[0]; !reach[from][to] {
				reach[from][to] = true
				open = append(open, edges[to]...)
			}
		}
	}
	for _, a := range slices.Sorted(maps.Keys(reach)) {
		group := []string{a}
		for b := range reach[a] {
			if b != a && reach[b][a] {
				group = append(group, b)
			}
		}
		// Each group once, at its first node.
		if slices.Sort(group); len(group) > 1 && group[0] == a {
			all = append(all, group)
		}
	}
	return all
}
