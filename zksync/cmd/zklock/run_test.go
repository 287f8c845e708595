package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// asProgram makes the test program the command, so that it can have a terminal.
const asProgram = "ZKSYNC_TEST_ZKLOCK"

// leavesItsGroup makes the test program a command that joins the process group of zklock.
const leavesItsGroup = "leave"

func leaveGroup() error {
	group, err := syscall.Getpgid(os.Getppid())
	if err != nil {
		return err
	}
	return syscall.Setpgid(0, group)
}

func TestMain(m *testing.M) {
	switch os.Getenv(asProgram) {
	case "":
	case leavesItsGroup:
		if err := leaveGroup(); err != nil {
			panic(err)
		}
		fmt.Println("started")
		time.Sleep(time.Minute) // it gets KILL
		os.Exit(0)
	default:
		main()
	}
	servers.AtOnce(8)
	goleak.VerifyTestMain(zksynctest.StopSharedAfter(m))
}

// A buffer that the command and the test may use at once.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func await(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

type result struct {
	status      int
	out, errors *buffer
}

func start(ctx context.Context, args ...string) (*result, <-chan struct{}) {
	return startWith(ctx, "", args...)
}

// startWith is start with a standard input.
func startWith(ctx context.Context, input string, args ...string) (*result, <-chan struct{}) {
	r := &result{out: &buffer{}, errors: &buffer{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.status = run(ctx, args, strings.NewReader(input), r.out, r.errors)
	}()
	return r, done
}

func finish(t *testing.T, args ...string) *result {
	t.Helper()
	r, done := start(t.Context(), args...)
	<-done
	return r
}

// want fails the test unless a call has ended with a status, and has said what is wanted.
func (r *result) want(t *testing.T, status int, says ...string) {
	t.Helper()
	said := r.out.String() + r.errors.String()
	if r.status != status {
		t.Errorf("status %d, want %d: %s", r.status, status, said)
	}
	for _, text := range says {
		if !strings.Contains(said, text) {
			t.Errorf("%q is not said: %s", text, said)
		}
	}
}

// A command that is stopped as soon as it runs is continued. To see this test fail, move
// signal.Notify of child.run behind cmd.Start, with a pause between them.
func TestCommandThatStopsAtOnce(t *testing.T) {
	srv := zksynctest.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r, done := start(ctx, "run", "-servers", srv.Addr(), "-grace", "1s", "-lock", "/locks/a", "--", "sh", "-c", "kill -STOP $$; echo continued")
	<-done
	r.want(t, 0, "continued")
}

// zklock run gives the command the token and exits with the status of the command.
func TestStatusAndToken(t *testing.T) {
	srv := zksynctest.Start(t)
	r := finish(t, "run", "-servers", srv.Addr(), "-lock", "/locks/a", "--", "sh", "-c", `echo "token $ZKSYNC_TOKEN"; exit 7`)
	if r.status != 7 || !strings.HasPrefix(r.out.String(), "token ") || strings.TrimSpace(r.out.String()) == "token" {
		t.Errorf("status %d, output %q, errors %q", r.status, r.out, r.errors)
	}
	for _, c := range []struct {
		name    string
		command []string
		want    int
	}{
		{"killed", []string{"sh", "-c", "kill -9 $$"}, 137},
		{"not found", []string{"no-such-command-anywhere"}, 127},
		{"not executable", []string{os.DevNull}, 126},
	} {
		if r := finish(t, append([]string{"run", "-servers", srv.Addr(), "-lock", "/locks/a", "--"}, c.command...)...); r.status != c.want {
			t.Errorf("%s: status %d, want %d; errors %q", c.name, r.status, c.want, r.errors)
		}
	}
	if left, _ := srv.Children("/locks/a"); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// zklock run exits with status 1, or with the status of -E, if the lock is taken and it may not wait.
func TestConflict(t *testing.T) {
	srv := zksynctest.Start(t)
	mu := zksync.NewMutex(srv.Connect(t), "/locks/a")
	if err := mu.Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"-try"}, {"-wait", "50ms"}, {"-try", "-E", "9"}} {
		want := 1
		if len(args) == 3 {
			want = 9
		}
		r := finish(t, append(append([]string{"run", "-servers", srv.Addr(), "-lock", "/locks/a"}, args...), "--", "echo", "ran")...)
		if r.status != want || r.out.String() != "" {
			t.Errorf("%v: status %d, want %d; output %q, errors %q", args, r.status, want, r.out, r.errors)
		}
	}
}

// Wrong usage ends with the usage status and names the mistake.
func TestUsage(t *testing.T) {
	for _, args := range [][]string{
		{}, {"no-such-command"}, {"run"}, {"run", "-lock", "/a"}, {"run", "-lock", "-elect", "/b", "--", "true"},
		{"run", "-elect", "/b", "-try", "--", "true"}, {"run", "/a", "-try", "-wait", "1s", "--", "true"},
		{"run", "-lock", "/a", "-E", "300", "--", "true"}, {"run", "-lock", "/a", "-servers", "x:y", "--", "true"},
		{"run", "-sem", "-1", "/a", "true"}, {"run", "-sem", "0", "/a", "true"}, {"run", "-sem", "", "/a", "true"}, {"run", "-no-such-option", "/a", "true"}, {"run", "-cert", "x", "/a", "true"},
		{"run", "-auth-file", "/no/such/file", "/a", "true"}, {"run", "-connect", "0", "/a", "true"},
		{"who"}, {"who", "/a", "/b"}, {"ls"}, {"break"}, {"watch"}, {"help", "nothing"}, {"completion", "csh"},
	} {
		if r := finish(t, args...); r.status != statusUsage || r.errors.String() == "" {
			t.Errorf("%v: status %d, errors %q", args, r.status, r.errors)
		}
	}
	srv := zksynctest.Start(t)
	if r := finish(t, "run", "-servers", srv.Addr(), "-lock", "a", "--", "true"); r.status != statusUsage {
		t.Errorf("a relative path: status %d, errors %q", r.status, r.errors)
	}
}

// An option that is given with an empty value is a wrong usage, before and behind the path, and no lock is broken. The line
// to break is the call of noneEmpty in parseAll.
func TestEmptyOption(t *testing.T) {
	srv := zksynctest.Start(t)
	held, err := zksync.NewMutex(srv.Connect(t), "/lock", zksync.WithID("host-a:1")).LockContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"break", "-servers", srv.Addr(), "-yes", "-id", "", "/lock"}, {"break", "-servers", srv.Addr(), "/lock", "-yes", "-id="},
		{"run", "-servers", "", "/lock", "true"}, {"who", "-servers", srv.Addr(), "-auth-file", "", "/lock"},
	} {
		finish(t, args...).want(t, statusUsage, "is empty; leave -")
	}
	if held.Err() != nil {
		t.Error("the lock was broken")
	}
}

// When the lock is lost, the command and its children are ended with TERM, and with KILL if they ignore TERM.
func TestLoss(t *testing.T) {
	for _, stubborn := range []bool{false, true} {
		t.Run(fmt.Sprintf("stubborn=%v", stubborn), func(t *testing.T) {
			srv := zksynctest.Start(t)
			trap := ""
			if stubborn {
				trap = `trap "" TERM; `
			}
			pids := filepath.Join(t.TempDir(), "pids")
			script := trap + `sleep 600 & echo $! $$ >` + pids + `.new; mv ` + pids + `.new ` + pids + `; wait; wait; wait`
			r, done := start(t.Context(), "run", "-servers", srv.Addr(), "-lock", "/locks/a", "-grace", "100ms", "--", "sh", "-c", script)
			await(t, "the command", func() bool { _, err := os.Stat(pids); return err == nil })
			for _, s := range srv.Sessions() {
				if err := srv.ExpireSession(s.ID); err != nil {
					t.Fatal(err)
				}
			}
			<-done
			if r.status != statusLost || !strings.Contains(r.errors.String(), "lost") {
				t.Errorf("status %d, errors %q", r.status, r.errors)
			}
			text, err := os.ReadFile(pids)
			if err != nil {
				t.Fatal(err)
			}
			for _, pid := range strings.Fields(string(text)) {
				await(t, "the end of process "+pid, func() bool { return !alive(pid) })
			}
		})
	}
}

// alive reports whether a process runs. A zombie does not run.
func alive(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// With -elect the command is started again with every term, and stopped when run is stopped.
func TestElect(t *testing.T) {
	srv := zksynctest.Start(t)
	ctx, cancel := context.WithCancel(t.Context())
	r, done := start(ctx, "run", "-servers", srv.Addr(), "-elect", "/master", "--", "sh", "-c", `echo "term $ZKSYNC_TOKEN"; sleep 600 & wait`)
	terms := func() int { return strings.Count(r.out.String(), "term ") }
	await(t, "the first term", func() bool { return terms() == 1 })
	for _, s := range srv.Sessions() {
		srv.ExpireSession(s.ID)
	}
	await(t, "the second term", func() bool { return terms() == 2 })
	other := zksync.NewElection(srv.Connect(t, session.WithTimeout(4*time.Second)), "/master")
	cancel()
	<-done
	if r.status != 143 {
		t.Errorf("status %d, want that of TERM; errors %q", r.status, r.errors)
	}
	if _, err := other.Campaign(t.Context()); err != nil {
		t.Error(err)
	}
}
