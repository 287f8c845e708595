package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// A goPackage is a package of the module, as go list describes it. The type checker
// finds the errors that the compiler would report, in a twentieth of the time.
type goPackage struct {
	Dir, ImportPath, Export string
	GoFiles                 []string

	imports types.Importer
	files   *token.FileSet
	parsed  map[string]*ast.File
}

// listPackages returns the packages of the module by their directories. It calls go list once.
func listPackages(t *testing.T) map[string]*goPackage {
	t.Helper()
	packages, err := listOnce()
	if err != nil {
		t.Fatal(err)
	}
	return packages
}

var listOnce = sync.OnceValues(func() (map[string]*goPackage, error) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		return nil, err
	}
	list := exec.Command("go", "list", "-export", "-deps", "-json=Dir,ImportPath,Export,GoFiles", "./...")
	list.Dir, list.Stderr = root, os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, err
	}
	found, exports := make(map[string]*goPackage), make(map[string]string)
	files := token.NewFileSet()
	imports := importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("no export data of %s", path)
		}
		return os.Open(exports[path])
	})
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		p := &goPackage{imports: imports, files: files, parsed: make(map[string]*ast.File)}
		if err := d.Decode(p); err == io.EOF {
			return found, nil
		} else if err != nil {
			return nil, err
		}
		exports[p.ImportPath] = p.Export
		if dir, err := filepath.Rel(root, p.Dir); err == nil && filepath.IsLocal(dir) {
			found[dir] = p
		}
	}
})

// check checks the package with texts in place of the files of these names.
func (p *goPackage) check(texts map[string]string) error {
	var all []*ast.File
	for _, name := range p.GoFiles {
		file, err := p.file(name, texts)
		if err != nil {
			return err
		}
		all = append(all, file)
	}
	var wrong []error
	config := types.Config{Importer: p.imports, Error: func(err error) { wrong = append(wrong, err) }}
	_, _ = config.Check(p.ImportPath, p.files, all, nil) // Error has all errors
	return errors.Join(wrong...)
}

func (p *goPackage) file(name string, texts map[string]string) (*ast.File, error) {
	if text, ok := texts[name]; ok {
		return parser.ParseFile(p.files, filepath.Join(p.Dir, name), text, parser.SkipObjectResolution)
	}
	if p.parsed[name] == nil {
		file, err := parser.ParseFile(p.files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		p.parsed[name] = file
	}
	return p.parsed[name], nil
}

// The check of a package finds the errors that the compiler would report.
func TestCheckFindsErrors(t *testing.T) {
	p := listPackages(t)["internal/bounds"]
	if err := p.check(nil); err != nil {
		t.Errorf("the package as it is: %v", err)
	}
	for what, text := range map[string]string{
		"an unused variable": "package bounds\nfunc f() { x := 1 }",
		"an unused import":   "package bounds\nimport \"fmt\"",
		"a wrong type":       "package bounds\nvar x int = \"1\"",
		"a syntax error":     "package bounds\nfunc f( {",
	} {
		if err := p.check(map[string]string{p.GoFiles[0]: text}); err == nil {
			t.Errorf("no error for %s", what)
		}
	}
}
