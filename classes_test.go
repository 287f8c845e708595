package toolkit

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// classified are the directories whose code decides by session.ClassOf.
var classified = []string{"session", "zksync"}

// looksInside are the files that may look into an error, and why.
var looksInside = map[string]string{
	"session/class.go":              "it is the table",
	"session/ctxerror.go":           "it decides whether the text of a cause says that the ctx ended",
	"session/mistake.go":            "it tells why a connection failed, and sees no error of a call",
	"session/internal/wire/conn.go": "it tells how a connection ended, and sees no error of a call",
}

// unwrapping returns the calls of errors.Is, errors.As and errors.AsType in a file.
func unwrapping(fset *token.FileSet, file *ast.File) (calls []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		fun := call.Fun
		if generic, ok := fun.(*ast.IndexExpr); ok {
			fun = generic.X
		}
		sel, ok := fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		pkg, ok := sel.X.(*ast.Ident)
		if ok && pkg.Name == "errors" && (sel.Sel.Name == "Is" || strings.HasPrefix(sel.Sel.Name, "As")) {
			at := fset.Position(call.Pos())
			calls = append(calls, fmt.Sprintf("%s:%d: errors.%s", filepath.ToSlash(at.Filename), at.Line, sel.Sel.Name))
		}
		return true
	})
	return calls
}

// No code decides by errors.Is or errors.As, which look into the cause of a caller's context: code decides by the class
// of an error. To see this test fail, write errors.Is(err, zk.ErrNoNode) in any file of package zksync.
func TestErrorsAreClassified(t *testing.T) {
	fset := token.NewFileSet()
	looked := make(map[string]bool)
	for _, dir := range classified {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() && d.Name() == "cmd" {
				return filepath.SkipDir // programs, which make their contexts themselves
			}
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			calls := unwrapping(fset, file)
			if _, ok := looksInside[filepath.ToSlash(path)]; ok {
				looked[filepath.ToSlash(path)] = len(calls) > 0
				return nil
			}
			for _, call := range calls {
				t.Errorf("%s: go by session.ClassOf, or compare with ==", call)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for path, why := range looksInside {
		if !looked[path] {
			t.Errorf("%s has no call of errors.Is any more (%s): strike it off the list", path, why)
		}
	}
}

// The rule of TestErrorsAreClassified finds each way to look into an error.
func TestErrorsAreClassifiedObjects(t *testing.T) {
	const source = `package p

import "errors"

func f(err error) bool {
	var e *someError
	_, ok := errors.AsType[*someError](err)
	return errors.Is(err, errOther) || errors.As(err, &e) || ok || errors.Join(err) != nil
}
`
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "p.go", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(unwrapping(fset, file), ", ")
	if want := "p.go:7: errors.AsType, p.go:8: errors.Is, p.go:8: errors.As"; got != want {
		t.Errorf("found %q, want %q", got, want)
	}
}
