package interop

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// A witness detects two simultaneous holders with the file system, independently of the lock: see
// testdata/java/Witness.java.
type witness struct{ dir, name string }

// newWitness prepares a directory for the witnesses of all processes.
func newWitness(t testing.TB) witness {
	t.Helper()
	w := witness{dir: t.TempDir()}
	for name, content := range map[string]string{"count": "0", "order": ""} {
		if err := os.WriteFile(filepath.Join(w.dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func (w witness) file(name string) string { return filepath.Join(w.dir, name) }

func (w witness) claim() error {
	f, err := os.OpenFile(w.file("held"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%d %s", os.Getpid(), w.name)
	return errors.Join(err, f.Close())
}

func (w witness) enter() error {
	err := w.claim()
	if errors.Is(err, fs.ErrExist) {
		other, _ := os.ReadFile(w.file("held"))
		pid, _, _ := strings.Cut(string(other), " ")
		n, bad := strconv.Atoi(pid)
		if bad != nil || !errors.Is(syscall.Kill(n, 0), syscall.ESRCH) {
			return fmt.Errorf("OVERLAP: %s came while %q held", w.name, other)
		}
		err = errors.Join(os.Remove(w.file("held")), w.claim())
	}
	if err != nil {
		return err
	}
	n, err := w.count()
	if err != nil {
		return err
	}
	if err := os.WriteFile(w.file("count"), []byte(strconv.Itoa(n+1)), 0o600); err != nil {
		return err
	}
	f, err := os.OpenFile(w.file("order"), os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, w.name)
	return errors.Join(err, f.Close())
}

func (w witness) exit() error { return os.Remove(w.file("held")) }

func (w witness) count() (int, error) {
	b, err := os.ReadFile(w.file("count"))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(b)))
}

// order lists the holders, one after another.
func (w witness) order(t testing.TB) []string {
	t.Helper()
	b, err := os.ReadFile(w.file("order"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(b))
}

// The witness of these tests reports two simultaneous holders.
func TestWitness(t *testing.T) {
	t.Parallel()
	w := newWitness(t)
	w.name = "a"
	if err := w.enter(); err != nil {
		t.Fatal(err)
	}
	other := w
	other.name = "b"
	if err := other.enter(); err == nil {
		t.Error("two held at once, and nobody objected")
	}
	if err := w.exit(); err != nil {
		t.Fatal(err)
	}
	if err := other.enter(); err != nil {
		t.Error(err)
	}
	if n, err := w.count(); n != 2 || err != nil || len(w.order(t)) != 2 {
		t.Errorf("%d have held, %v", n, err)
	}
}
