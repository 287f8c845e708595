package toolkit

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	testingPage = "docs/testing.md"
	promises    = "What is promised, and the test that would fail without it"
)

// testsByPackage has the names of all tests, fuzz targets, benchmarks and
// examples, by the last element of the path of their package.
func testsByPackage(t *testing.T) map[string]map[string]bool {
	t.Helper()
	found, dirs := make(map[string]map[string]bool), make(map[string]string)
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || len(d.Name()) > 1 && d.Name()[0] == '.') {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(name, "_test.go") {
			return nil
		}
		dir := path.Dir(filepath.ToSlash(name))
		pkg := path.Base(dir)
		if pkg == "." {
			pkg = "toolkit"
		}
		if other, ok := dirs[pkg]; ok && other != dir {
			t.Errorf("%s and %s are both called %s: tests cannot be named by that", other, dir, pkg)
		}
		dirs[pkg] = dir
		if found[pkg] == nil {
			found[pkg] = make(map[string]bool)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && testName.MatchString(f.Name.Name) {
				found[pkg][f.Name.Name] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

var (
	testName  = regexp.MustCompile(`^(Test|Fuzz|Benchmark|Example)`)
	namedTest = regexp.MustCompile("`(?:([a-z]+)\\.)?((?:Test|Fuzz|Benchmark|Example)[A-Za-z0-9_]+)`")
)

// What docs/testing.md says is tested, is: the tests that it names are there.
func TestNamedTestsAreThere(t *testing.T) {
	all := testsByPackage(t)
	named := namedTest.FindAllStringSubmatch(readDocument(t, testingPage), -1)
	if len(named) == 0 {
		t.Error("no tests are named")
	}
	for _, m := range named {
		pkg, name := m[1], m[2]
		in := slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(p string) bool { return !all[p][name] })
		switch {
		case pkg == "" && len(in) == 0:
			t.Errorf("%s speaks of %s, which is in no package", testingPage, name)
		case pkg != "" && all[pkg] == nil:
			t.Errorf("%s speaks of %s.%s: there is no package %s with tests", testingPage, pkg, name, pkg)
		case pkg != "" && !all[pkg][name]:
			t.Errorf("%s speaks of %s.%s, which is not in that package, but in %q", testingPage, pkg, name, in)
		}
	}
}

// Each promise has a test that is named by its package.
func TestPromisesNameTests(t *testing.T) {
	_, section, ok := strings.Cut(readDocument(t, testingPage), "\n## "+promises+"\n")
	if !ok {
		t.Fatalf("%s has no section %q", testingPage, promises)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	rows := 0
	lines := strings.Split(section, "\n")
	for i, line := range lines {
		// The first two lines of a table are its head.
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|--") || i+1 < len(lines) && strings.HasPrefix(lines[i+1], "|--") {
			continue
		}
		rows++
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != 2 || strings.TrimSpace(cells[0]) == "" {
			t.Errorf("%s: a row is a promise and its tests, and not %q", testingPage, line)
			continue
		}
		tests := namedTest.FindAllStringSubmatch(cells[1], -1)
		if len(tests) == 0 {
			t.Errorf("%s names no test for %q", testingPage, strings.TrimSpace(cells[0]))
		}
		for _, m := range tests {
			if m[1] == "" {
				t.Errorf("%s does not say in which package %s is", testingPage, m[2])
			}
		}
	}
	if rows == 0 {
		t.Errorf("%s has no promises", testingPage)
	}
}
