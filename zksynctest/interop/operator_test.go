package interop

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// An operator calls zklock and keeps a transcript.
type operator struct {
	t       *testing.T
	program string
	servers string
	text    strings.Builder
}

// zklock runs a command, checks its exit status, and returns its output.
func (o *operator) zklock(answer string, status int, args ...string) string {
	o.t.Helper()
	cmd := exec.CommandContext(o.t.Context(), o.program, args...)
	cmd.Env = append(os.Environ(), "ZOOKEEPER_SERVERS="+o.servers)
	cmd.Stdin = strings.NewReader(answer)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || cmd.ProcessState.ExitCode() != status {
		o.t.Errorf("zklock %v: %v, want status %d: %s", args, err, status, out)
	}
	printed := strings.Replace(string(out), "[y/N] ", "[y/N] "+answer, 1)
	o.text.WriteString("$ zklock " + strings.Join(args, " ") + "\n" + printed)
	return string(out)
}

func (o *operator) want(printed string, texts ...string) {
	o.t.Helper()
	for _, text := range texts {
		if !strings.Contains(printed, text) {
			o.t.Errorf("%q is not in: %s", text, printed)
		}
	}
}

// With zklock an operator finds the holders of locks of Curator and kazoo, breaks a lock, and sees the next holder. The
// transcript, which -v prints, is in docs/operating.md.
func TestOperator(t *testing.T) {
	t.Parallel()
	ensemble := zksynctest.RealZooKeeper(t, 3)
	o := &operator{t: t, program: filepath.Join(t.TempDir(), "zklock"), servers: ensemble.Servers()}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", o.program, "../../zksync/cmd/zklock").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	m := ensemble.Connect(t, session.WithTimeout(alive))
	s := live(t, m)
	must(t, s.MakeDir(t.Context(), "/locks"))

	coffee := java.peer(t).connect(t, o.servers, alive)
	report := coffee.make(t, "curator-mutex", "/locks/report")
	report.call(t, "acquire")
	snakes := python.peer(t).connect(t, o.servers, alive)
	snakes.make(t, "kazoo-lock", "/locks/import").call(t, "acquire")
	other := python.peer(t).connect(t, o.servers, alive).make(t, "kazoo-lock", "/locks/import")
	imported := other.start("acquire")
	awaitChildren(t, s, "/locks/import", 2)
	job := zksync.NewMutex(m, "/locks/report", zksync.WithID("worker-3:4711"))
	waits := start(func() error { return job.Lock(t.Context()) })
	awaitChildren(t, s, "/locks/report", 2)
	units := zksync.NewSemaphore(m, "/locks/upload", 4, zksync.WithID("worker-3:4711"))
	must(t, units.Acquire(t.Context(), 2))

	o.want(o.zklock("", 0, "ls", "/locks"), "/locks/report", "Curator, zksync", "/locks/import", "kazoo", "semaphore")
	o.want(o.zklock("", 0, "who", "/locks/report"), "holds  exclusive", "Curator", "waits  exclusive  worker-3:4711")
	o.want(o.zklock("", 0, "who", "/locks/import"), "holds  exclusive", "kazoo")
	o.want(o.zklock("", 1, "run", "-try", "/locks/report", "--", "./nightly-report"), "/locks/report is held by")
	o.want(o.zklock("n\n", 1, "break", "/locks/report"), "nothing was broken")
	waiting(t, "Lock", waits)
	o.want(o.zklock("y\n", 0, "break", "/locks/report"), "now /locks/report is held by worker-3:4711")
	ended(t, "Lock", waits)
	o.want(o.zklock("", 0, "who", "/locks/report"), "holds  exclusive  worker-3:4711")
	o.want(o.zklock("y\n", 0, "break", "/locks/import"), "now /locks/import is held by")
	answered(t, "acquire", imported)
	must(t, job.Unlock())
	must(t, units.Release(2))
	o.want(o.zklock("", 0, "ls", "-json", "/locks"), `"path":"/locks/report","kind":"empty"`)
	t.Logf("the transcript:\n%s", o.text.String())
}
