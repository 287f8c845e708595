package zkserver_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// rewrite makes a server replace its data file.
func rewrite(t *testing.T, s *zkserver.Server, file string) {
	t.Helper()
	before, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	s.Renew()
	if err := s.Set("/a", nil); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(file)
	if err != nil || os.SameFile(before, after) {
		t.Fatalf("the file was not replaced: %v", err)
	}
}

// A second server on the same file is refused, also when it uses a symbolic link, a hard link or
// another path, and when a file that looks like a lock file is removed, before and after the first
// server has replaced the file. The first server replaces the file that a link points to, and keeps
// the link. The lines to break are the lines in lock and replace that lock the file.
func TestOneServerAFileByAnyName(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no lock")
	}
	s, file := onFile(t, zkserver.Config{})
	if err := s.Create("/a", []byte("x")); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(file)
	soft, hard := filepath.Join(dir, "soft"), filepath.Join(dir, "hard")
	if err := errors.Join(os.Symlink("data", soft), os.Link(file, hard)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{file, soft, hard, dir + "/../" + filepath.Base(dir) + "/data"} {
		for _, when := range []string{"first", "then"} {
			_ = os.Remove(file + ".lock")
			if second, err := zkserver.New(zkserver.Config{DataFile: name}); err == nil || !strings.Contains(err.Error(), "another server uses it") {
				t.Errorf("%s, %s: %v", name, when, err)
				if err == nil {
					second.Close()
				}
			}
			if when == "first" {
				rewrite(t, s, file)
			}
		}
	}
	// Through a link the server has the same data, before and after it has replaced the file.
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = start(t, zkserver.Config{DataFile: soft})
	rewrite(t, s, file)
	if err := s.Set("/a", []byte("y")); err != nil {
		t.Fatal(err)
	}
	if target, err := os.Readlink(soft); err != nil || target != "data" {
		t.Errorf("the link leads to %q, %v", target, err)
	}
	same(t, "by the link", crashed(t, file, zkserver.Config{}), s)
}

// A server whose file was removed and replaced by the file of a second server leaves the second
// file unchanged and stops. The line to break is the call of names in replace.
func TestTheFileWasRemoved(t *testing.T) {
	s, file := onFile(t, zkserver.Config{})
	if err := s.Create("/a", nil); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	second := start(t, zkserver.Config{DataFile: file})
	if err := second.Create("/b", nil); err != nil {
		t.Fatal(err)
	}
	var err error
	for data, n := make([]byte, 1<<20), 0; err == nil && n < 64; n++ {
		err = s.Set("/a", data)
	}
	if err == nil || !strings.Contains(err.Error(), "another program has removed") {
		t.Errorf("%v", err)
	}
	same(t, "the second server", crashed(t, file, zkserver.Config{}), second)
}

// Of many servers that are started on one file at the same time, one at a time serves, and each
// server finds the writes of all earlier servers, while the file is replaced all the time.
func TestServersInTurn(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no lock")
	}
	file := filepath.Join(t.TempDir(), "data")
	var wg sync.WaitGroup
	var serving, turns atomic.Int32
	for i := range 4 {
		wg.Go(func() {
			for turns.Load() < 30 {
				s, err := zkserver.New(zkserver.Config{DataFile: file})
				if err != nil {
					if !strings.Contains(err.Error(), "another server uses it") {
						t.Errorf("%v", err)
						return
					}
					runtime.Gosched()
					continue
				}
				if n := serving.Add(1); n != 1 {
					t.Errorf("%d servers at once", n)
				}
				n := turns.Add(1)
				if list, _ := s.Children("/"); len(list) != int(n-1)+1 {
					t.Errorf("turn %d of server %d finds %d znodes", n, i, len(list)-1)
				}
				if err := s.Create(fmt.Sprintf("/n%d", n), nil); err != nil {
					t.Error(err)
				}
				s.Renew()
				serving.Add(-1)
				if err := s.Close(); err != nil { // Close replaces the file once more
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// Damage in a run of zeros is not mistaken for a write that a crash of the machine interrupted, if
// a later write follows. The line to break is the call of laterBatch in tornWrite.
func TestDamageBetweenZeros(t *testing.T) {
	s, file := onFile(t, zkserver.Config{})
	if err := s.Create("/zeros", make([]byte, 4000)); err != nil {
		t.Fatal(err)
	}
	if err := s.Create("/behind", nil); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(whole, make([]byte, 3000))
	for _, i := range []int{at - 20, at + 100, at + 1500, at + 3999} {
		b := bytes.Clone(whole)
		b[i] ^= 0x41
		if _, err := damaged(t, file, b); !errors.Is(err, zkserver.ErrCorrupt) {
			t.Errorf("byte %d changed: %v", i, err)
		}
	}
}

// A file without batches and passwords is readable, and continues as a file of the present version.
func TestAFileOfTheFirstVersion(t *testing.T) {
	b, err := os.ReadFile("testdata/version1.data")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, zkserver.Config{DataFile: file})
	if data, ok := s.Get("/a"); !ok || string(data) != "data" {
		t.Errorf("%q, %v", data, ok)
	}
	if list := s.Sessions(); len(list) != 1 {
		t.Errorf("sessions %v", list)
	}
	derived := zkserver.PasswordOf(s.Sessions()[0].ID)
	owner := &raw{t: t, id: s.Sessions()[0].ID, timeout: 30_000, password: string(derived[:])}
	if w := owner.again(s).welcome(); w.id != owner.id {
		t.Error("its client cannot go on")
	}
	if err := s.Create("/b", nil); err != nil {
		t.Fatal(err)
	}
	if b, err = os.ReadFile(file); err != nil || b[11] != 2 {
		t.Errorf("the version is %d, %v", b[11], err)
	}
	same(t, "after a crash", crashed(t, file, zkserver.Config{}), s)
}
