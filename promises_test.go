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

// testsByPackage returns the names of all tests, fuzz targets, benchmarks and
// examples by the last element of the path of their package.
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
		if strings.HasPrefix(dir, "examples/") {
			pkg = dir // an example is called like the package that it shows
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

// Every test that docs/testing.md or docs/results.md names exists.
func TestNamedTestsAreThere(t *testing.T) {
	all := testsByPackage(t)
	for _, page := range []string{"docs/testing.md", "docs/results.md"} {
		named := namedTest.FindAllStringSubmatch(readDocument(t, page), -1)
		if len(named) == 0 {
			t.Errorf("%s names no tests", page)
		}
		for _, m := range named {
			pkg, name := m[1], m[2]
			in := slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(p string) bool { return !all[p][name] })
			switch {
			case pkg == "" && len(in) == 0:
				t.Errorf("%s names %s, which is in no package", page, name)
			case pkg != "" && all[pkg] == nil:
				t.Errorf("%s names %s.%s, but no package %s has tests", page, pkg, name, pkg)
			case pkg != "" && !all[pkg][name]:
				t.Errorf("%s names %s.%s, which is not in that package, but in %q", page, pkg, name, in)
			}
		}
	}
}
