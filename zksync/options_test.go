package zksync_test

import (
	"bytes"
	"context"
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
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/watch"
	"github.com/go-zksync/toolkit/zksync"
)

// compile returns a function that type-checks a statement as the compiler would. The
// statement may use the parameters m and p, and package zksync.
func compile(t *testing.T) func(statement string) error {
	t.Helper()
	list := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Export", ".")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	exports := make(map[string]string)
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var p struct{ ImportPath, Export string }
		if err := d.Decode(&p); err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
	}
	files := token.NewFileSet()
	config := types.Config{Importer: importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })}
	return func(statement string) error {
		file, err := parser.ParseFile(files, "p.go", `package p

import (
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
)

func f(m *session.Manager, p string) { `+statement+` }
`, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		_, err = config.Check("p", files, []*ast.File{file}, nil)
		return err
	}
}

// A constructor takes the options of its primitive, and no other option compiles. To
// see this test fail, add forQueue to MutexOption.
func TestOptionsFitTheirPrimitives(t *testing.T) {
	options := map[string]string{
		"WithCapacity": "1", "WithID": `"a"`, "WithIDWait": "", "WithLayout": "zksync.LayoutKazoo", "WithLinger": "1",
		"WithMaxWait": "1", "WithPrefetch": "1", "WithSizeFrom": "p", "WithStopTimeout": "1",
	}
	check := compile(t)
	for constructor, fitting := range map[string]string{
		"NewMutex(m, p":            "WithID WithLayout WithLinger WithMaxWait",
		"NewRWMutex(m, p":          "WithID WithLayout WithMaxWait",
		"NewSemaphore(m, p, 1":     "WithID WithLayout WithMaxWait WithSizeFrom",
		"NewElection(m, p":         "WithID WithLayout WithMaxWait WithStopTimeout",
		"NewBarrier(m, p":          "WithMaxWait",
		"NewDoubleBarrier(m, p, 2": "WithID WithMaxWait",
		"NewGroup(m, p":            "WithIDWait",
		"NewQueue(m, p":            "WithCapacity WithLayout WithMaxWait WithPrefetch",
		"NewPriorityQueue(m, p":    "WithMaxWait WithPrefetch",
		"NewDelayQueue(m, p":       "WithMaxWait WithPrefetch",
	} {
		for option, value := range options {
			call := fmt.Sprintf("zksync.%s, zksync.%s(%s))", constructor, option, value)
			err := check("_ = " + call)
			if fits := slices.Contains(strings.Fields(fitting), option); fits && err != nil {
				t.Errorf("%s does not compile: %v", call, err)
			} else if !fits && (err == nil || !strings.Contains(err.Error(), "does not implement zksync.")) {
				t.Errorf("%s: error %v, want one that says which option type zksync.%s does not implement", call, err, option)
			}
		}
	}
}

// is reports whether an option has an option type.
func is[O zksync.Option](opt zksync.Option) bool { _, ok := opt.(O); return ok }

// The value of an option has the option types of its primitives, and no type assertion
// gives it another one. To see this test fail, let mutexOption embed queueOption.
func TestOptionValuesFitTheirPrimitives(t *testing.T) {
	primitives := map[string]func(zksync.Option) bool{
		"Mutex": is[zksync.MutexOption], "RWMutex": is[zksync.RWMutexOption], "Semaphore": is[zksync.SemaphoreOption],
		"Election": is[zksync.ElectionOption], "Barrier": is[zksync.BarrierOption], "DoubleBarrier": is[zksync.DoubleBarrierOption],
		"Group": is[zksync.GroupOption], "Queue": is[zksync.QueueOption], "PriorityQueue": is[zksync.PriorityQueueOption],
		"DelayQueue": is[zksync.DelayQueueOption],
	}
	for _, c := range []struct {
		opt  zksync.Option
		want string
	}{
		{zksync.WithCapacity(1), "Queue"},
		{zksync.WithID("a"), "DoubleBarrier Election Mutex RWMutex Semaphore"},
		{zksync.WithIDWait(), "Group"},
		{zksync.WithLayout(zksync.LayoutKazoo), "Election Mutex Queue RWMutex Semaphore"},
		{zksync.WithLinger(1), "Mutex"},
		{zksync.WithMaxWait(1), "Barrier DelayQueue DoubleBarrier Election Mutex PriorityQueue Queue RWMutex Semaphore"},
		{zksync.WithPrefetch(1), "DelayQueue PriorityQueue Queue"},
		{zksync.WithSizeFrom("/p"), "Semaphore"},
		{zksync.WithStopTimeout(1), "Election"},
	} {
		var got []string
		for name, has := range primitives {
			if has(c.opt) {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		if strings.Join(got, " ") != c.want {
			t.Errorf("a %T is an option of %v, want %s", c.opt, got, c.want)
		}
	}
}

// The first call of a primitive whose Manager is nil fails with ErrInvalidOption.
func TestNilManager(t *testing.T) {
	ctx := t.Context()
	ended, end := context.WithCancel(ctx)
	end()
	try := func(_ bool, err error) error { return err }
	failed := func(_ context.Context, err error) error { return err }
	_, joined := zksync.NewGroup(nil, path).Join(ctx, "a", nil)
	_, ephemeral := (*session.Manager)(nil).Ephemeral(ctx, path, nil)
	_, inspected := zksync.Inspect(ctx, nil, path)
	node, tree := watch.Node(ctx, nil, path), watch.Tree(ctx, nil, path)
	members := zksync.NewGroup(nil, path).Watch(ctx)
	leaders := zksync.NewElection(nil, path).Observe(ctx)
	queue := zksync.NewQueue(nil, path, zksync.WithCapacity(1))
	defer queue.Close()
	messages := queue.Messages()
	for range members.Events() {
	}
	for range leaders.Events() {
	}
	for range messages {
	}
	for range node.Events() {
	}
	for range tree.Events() {
	}
	for call, err := range map[string]error{
		"Run": zksync.NewElection(nil, path).Run(ctx, func(context.Context) error { return nil }), "Inspect": inspected,
		"Node": node.Err(), "Tree": tree.Err(), "WaitSynced": tree.WaitSynced(ended), "Ephemeral": ephemeral, "MoveTo": zksync.NewMessage("m", nil, nil).MoveTo(ctx, nil),
		"Lock": zksync.NewMutex(nil, path).Lock(ctx), "TryLock": try(zksync.NewMutex(nil, path).TryLock(ctx)),
		"RLock": zksync.NewRWMutex(nil, path).RLock(ctx), "Acquire": zksync.NewSemaphore(nil, path, 1).Acquire(ctx, 1),
		"Campaign": failed(zksync.NewElection(nil, path).Campaign(ctx)), "Observe": leaders.Err(),
		"Wait": zksync.NewBarrier(nil, path).Wait(ctx), "Enter": zksync.NewDoubleBarrier(nil, path, 1).Enter(ctx),
		"Join": joined, "Watch": members.Err(), "Put": queue.Put(ctx, nil), "Messages": queue.Err(),
		"PutAt": zksync.NewDelayQueue(nil, path).PutAt(ctx, nil, time.Now()), "PriorityQueue.Put": zksync.NewPriorityQueue(nil, path).Put(ctx, nil, 1),
	} {
		if !errors.Is(err, zksync.ErrInvalidOption) {
			t.Errorf("%s: %v, want ErrInvalidOption", call, err)
		}
	}
}
