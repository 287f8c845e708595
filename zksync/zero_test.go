package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"iter"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/go-zksync/toolkit/watch"
	"github.com/go-zksync/toolkit/zksync"
)

// zeroPrimitives return zero values of the types that have a constructor.
var zeroPrimitives = []func() any{
	func() any { return new(zksync.Mutex) }, func() any { return new(zksync.RWMutex) }, func() any { return new(zksync.Semaphore) },
	func() any { return new(zksync.Election) }, func() any { return new(zksync.Group) }, func() any { return new(zksync.Barrier) },
	func() any { return new(zksync.DoubleBarrier) }, func() any { return new(zksync.Queue) }, func() any { return new(zksync.PriorityQueue) },
	func() any { return new(zksync.DelayQueue) }, func() any { return new(zksync.Message) },
}

// zeroResults are zero values of the other types, whose methods have results of their own.
var zeroResults = []any{
	new(zksync.Member), new(zksync.Candidate), new(zksync.Contender), new(zksync.Participant), new(zksync.Inspection), new(zksync.Kind),
	new(zksync.Client), new(zksync.Layout), new(zksync.ContenderClass), new(zksync.CountError), new(zksync.PutAllError),
}

// The methods of zero values do not panic: they fail with an error that says so, and their channels, loops and streams are
// at an end with this error. That holds for all methods of all exported types.
func TestZeroValues(t *testing.T) {
	tested := make(map[string]bool)
	for _, zero := range zeroPrimitives {
		typ := reflect.TypeOf(zero())
		tested[typ.Elem().Name()] = true
		for i := range typ.NumMethod() {
			name := typ.String() + "." + typ.Method(i).Name
			results, err := callZero(t.Context(), reflect.ValueOf(zero()).Method(i))
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			for _, result := range results {
				checkZeroResult(t, name, result)
			}
		}
	}
	for _, zero := range zeroResults {
		v := reflect.ValueOf(zero)
		tested[v.Type().Elem().Name()] = true
		for i := range v.NumMethod() {
			if _, err := callZero(t.Context(), v.Method(i)); err != nil {
				t.Errorf("%v.%s: %v", v.Type(), v.Type().Method(i).Name, err)
			}
		}
	}
	for _, name := range exportedTypes(t) {
		if !tested[name] {
			t.Errorf("no zero value of %s is tested", name)
		}
	}
}

// callZero calls a method with a context, functions that do nothing, ones and zero values. err says that it has panicked.
func callZero(ctx context.Context, method reflect.Value) (results []reflect.Value, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it panicked: %v", p)
		}
	}()
	typ := method.Type()
	var args []reflect.Value
	for i := range typ.NumIn() {
		in := typ.In(i)
		switch {
		case typ.IsVariadic() && i == typ.NumIn()-1:
		case in == reflect.TypeFor[context.Context]():
			args = append(args, reflect.ValueOf(ctx))
		case in.Kind() == reflect.Func:
			args = append(args, reflect.MakeFunc(in, func([]reflect.Value) []reflect.Value { return []reflect.Value{reflect.Zero(in.Out(0))} }))
		case in.Kind() == reflect.Int:
			args = append(args, reflect.ValueOf(1))
		default:
			args = append(args, reflect.Zero(in))
		}
	}
	return method.Call(args), nil
}

// checkZeroResult checks a result of a method of a zero value.
func checkZeroResult(t *testing.T, name string, result reflect.Value) {
	t.Helper()
	saysSo := func(err error) {
		t.Helper()
		if !errors.Is(err, zksync.ErrInvalidOption) || !strings.Contains(err.Error(), "zero value") {
			t.Errorf("%s: %v, want an error that says that the value is a zero value", name, err)
		}
	}
	ended := func(channel reflect.Value) {
		t.Helper()
		if _, more := channel.Recv(); more {
			t.Errorf("%s: the channel delivers", name)
		}
	}
	switch r := result.Interface().(type) {
	case iter.Seq2[*zksync.Message, error]:
		loops := 0
		for msg, err := range r {
			if loops++; msg != nil || loops > 1 {
				t.Fatalf("%s: message %v of loop %d", name, msg, loops)
			}
			saysSo(err)
		}
		if loops != 1 {
			t.Errorf("%s: no error", name)
		}
	case *watch.Stream[zksync.Candidate]:
		ended(reflect.ValueOf(r.Events()))
		saysSo(r.Err())
	case *watch.Stream[[]zksync.Member]:
		ended(reflect.ValueOf(r.Events()))
		saysSo(r.Err())
	default:
		switch {
		case result.Type() == reflect.TypeFor[error]():
			err, _ := r.(error)
			saysSo(err)
		case strings.HasSuffix(name, "Message.Lost"): // nil, as of a message in no queue
			if !result.IsNil() {
				t.Errorf("%s: a channel, want nil", name)
			}
		case result.Kind() == reflect.Chan:
			ended(result)
		case !result.IsZero():
			t.Errorf("%s: %v, want the zero result", name, r)
		}
	}
}

// exportedTypes returns the exported types of package zksync that are neither interfaces nor other names of a type.
func exportedTypes(t *testing.T) (names []string) {
	t.Helper()
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range gen.Specs {
				typ, ok := spec.(*ast.TypeSpec)
				if !ok || !typ.Name.IsExported() || typ.Assign.IsValid() {
					continue
				}
				if _, ok := typ.Type.(*ast.InterfaceType); !ok {
					names = append(names, typ.Name.Name)
				}
			}
		}
	}
	return names
}
