package toolkit

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// parseDir returns the files of a directory whose names match, by their names.
func parseDir(t *testing.T, pattern string) map[string]*ast.File {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("no files %s: %v", pattern, err)
	}
	files := make(map[string]*ast.File)
	for _, name := range names {
		if files[name], err = parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// exemplified returns the exported types of a package that are declared in it, and
// whether each has an Example: one that is named for the type, for one of its methods,
// or for a function or method that returns it, also a promoted one. The Examples of an
// interface are also Examples of the interfaces that it embeds.
func exemplified(t *testing.T, dir string) map[string]bool {
	t.Helper()
	types, examples, embeds := make(map[string]bool), make(map[string]bool), make(map[string][]string)
	promotes := make(map[string][]string) // the embedded types of a struct
	returns := make(map[string][]string)  // the types that a function or method has in its results, by its name in Examples
	for name, file := range parseDir(t, dir+"/*.go") {
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if what, ok := strings.CutPrefix(d.Name.Name, "Example"); ok && strings.HasSuffix(name, "_test.go") {
					examples[what] = true
				} else if d.Type.Results != nil {
					what = d.Name.Name
					if d.Recv != nil {
						what = strings.Join(identifiers(d.Recv)[:1], "") + "_" + what
					}
					returns[what] = append(returns[what], identifiers(d.Type.Results)...)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					// An alias has the Examples of the type that it stands for.
					if s, ok := spec.(*ast.TypeSpec); ok && s.Name.IsExported() && !s.Assign.IsValid() && !strings.HasSuffix(name, "_test.go") {
						types[s.Name.Name] = false
						if i, ok := s.Type.(*ast.InterfaceType); ok {
							embeds[s.Name.Name] = identifiers(i.Methods)
						}
						if st, ok := s.Type.(*ast.StructType); ok {
							for _, field := range st.Fields.List {
								if id, ok := field.Type.(*ast.Ident); ok && field.Names == nil {
									promotes[s.Name.Name] = append(promotes[s.Name.Name], id.Name)
								}
							}
						}
					}
				}
			}
		}
	}
	for what := range examples {
		parts := strings.Split(what, "_")
		if n := len(parts); n > 1 && parts[n-1] != "" && !ast.IsExported(parts[n-1]) {
			parts = parts[:n-1] // a suffix
		}
		shown := append(returns[strings.Join(parts, "_")], parts[0])
		for _, embedded := range promotes[parts[0]] {
			shown = append(shown, returns[strings.Join(append([]string{embedded}, parts[1:]...), "_")]...)
		}
		for i := 0; i < len(shown); i++ {
			if _, ok := types[shown[i]]; ok {
				types[shown[i]] = true
			}
			shown = append(shown, embeds[shown[i]]...)
		}
	}
	return types
}

// identifiers returns the names of the package's own types in a list of results, in a
// receiver with the type first, or in the embedded interfaces of an interface.
func identifiers(list *ast.FieldList) (all []string) {
	for _, field := range list.List {
		if _, method := field.Type.(*ast.FuncType); method {
			continue
		}
		ast.Inspect(field.Type, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				all = append(all, id.Name)
			}
			_, foreign := n.(*ast.SelectorExpr)
			return !foreign
		})
	}
	return all
}

// Each exported type of the packages for users has an Example. To see this test fail,
// rename ExampleMessage_Ack.
func TestEachTypeHasAnExample(t *testing.T) {
	for _, dir := range []string{"session", "watch", "zksync", "zksynctest", "zksynctest/zkserver"} {
		types := exemplified(t, dir)
		if dir == "zksynctest/zkserver" {
			delete(types, "ACL") // no exported function takes or returns an ACL
		}
		for _, name := range slices.Sorted(maps.Keys(types)) {
			if !types[name] {
				t.Errorf("%s.%s has no Example: write an Example%s", dir, name, name)
			}
		}
		t.Logf("%s: %d types", dir, len(types))
	}
}

// The options and faults whose use is not obvious have an Example of their own.
func TestOptionsAndFaultsHaveExamples(t *testing.T) {
	for dir, names := range map[string][]string{
		"zksync":     {"WithLayout", "WithStopTimeout"},
		"zksynctest": {"Server_Partition", "Server_ExpireSession", "Fault", "EmbeddedEnsemble_Cut"},
	} {
		examples := make(map[string]bool)
		for _, file := range parseDir(t, dir+"/*_test.go") {
			for _, decl := range file.Decls {
				if d, ok := decl.(*ast.FuncDecl); ok && d.Recv == nil {
					examples[d.Name.Name] = true
				}
			}
		}
		for _, name := range names {
			if !examples["Example"+name] {
				t.Errorf("%s has no Example%s", dir, name)
			}
		}
	}
}

// exampleLines are the examples that may have more than 200 lines without tests, and
// why.
var exampleLines = map[string]struct {
	most int
	why  string
}{
	"quickstart": {600, "it demonstrates faults"},
}

// An example is short enough to be read: it has at most 200 lines without tests, or the
// number in exampleLines. examples/bench is a tool, and no example.
func TestExamplesAreShort(t *testing.T) {
	dirs, err := filepath.Glob("examples/*")
	if err != nil || len(dirs) < 5 {
		t.Fatalf("examples %v: %v", dirs, err)
	}
	for _, dir := range dirs {
		name := filepath.Base(dir)
		if name == "bench" {
			continue
		}
		files, err := filepath.Glob(dir + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		lines := 0
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				lines += strings.Count(readDocument(t, file), "\n")
			}
		}
		if most := max(200, exampleLines[name].most); lines > most {
			t.Errorf("%s has %d lines, want %d at most", dir, lines, most)
		}
	}
}
