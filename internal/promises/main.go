// Promises prints the promises that the tests of the module prove: the first sentence
// of the comment of each test, by package.
//
//	go run ./internal/promises
package main

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	found, err := read(".")
	if err == nil {
		err = write(os.Stdout, found)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "promises:", err)
		os.Exit(1)
	}
}

// A promise is the statement that a test proves.
type promise struct {
	test string
	text string // empty if the test has no comment
}

var testName = regexp.MustCompile(`^(Test|Fuzz)[A-Z_]`)

// read returns the promises of the tests below root by the path of their package,
// in the order of the tests' names.
func read(root string) (map[string][]promise, error) {
	found := make(map[string][]promise)
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() != ".." && len(d.Name()) > 1 && d.Name()[0] == '.'):
			return filepath.SkipDir
		case !strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		pkg := path.Dir(filepath.ToSlash(rel))
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if ok && f.Recv == nil && f.Name.Name != "TestMain" && testName.MatchString(f.Name.Name) {
				found[pkg] = append(found[pkg], promise{f.Name.Name, sentence(f.Doc.Text())})
			}
		}
		return nil
	})
	for _, list := range found {
		slices.SortFunc(list, func(a, b promise) int { return strings.Compare(a.test, b.test) })
	}
	return found, err
}

// sentence returns the first sentence of a comment on one line.
func sentence(text string) string {
	return strings.Join(strings.Fields(new(doc.Package).Synopsis(text)), " ")
}

// write writes a list of Markdown for each package.
func write(w io.Writer, found map[string][]promise) error {
	out := bufio.NewWriter(w)
	for _, pkg := range slices.Sorted(maps.Keys(found)) {
		fmt.Fprintf(out, "## %s\n\n", pkg)
		for _, p := range found[pkg] {
			fmt.Fprintf(out, "- `%s`: %s\n", p.test, p.text)
		}
		fmt.Fprintln(out)
	}
	return out.Flush()
}
