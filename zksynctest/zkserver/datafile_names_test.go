package zkserver_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A server does not remove the data file of another server when it writes a new snapshot, for any names of the two
// files. The line to break is the name in snapshotName.
func TestASnapshotLeavesOtherFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "data")
	for _, suffix := range []string{".new", ".tmp", "~"} {
		s := start(t, zkserver.Config{DataFile: file + suffix})
		if err := s.Create("/a", nil); err != nil {
			t.Fatal(err)
		}
		_ = start(t, zkserver.Config{DataFile: file}).Close()
		if err := s.Create("/acknowledged", nil); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = start(t, zkserver.Config{DataFile: file + suffix})
		if _, ok := s.Get("/acknowledged"); !ok {
			t.Errorf("%s: a write that was acknowledged is gone", suffix)
		}
	}
}

// A server fails if it would have to remove a file that another server uses, and removes a file
// that a crashed server left behind. The line to break is the call of lockFile in removeUnused.
func TestASnapshotInUse(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no lock")
	}
	file := filepath.Join(t.TempDir(), "data")
	other := start(t, zkserver.Config{DataFile: zkserver.SnapshotName(file)})
	if s, err := zkserver.New(zkserver.Config{DataFile: file}); err == nil || !strings.Contains(err.Error(), "another server uses it") {
		if err == nil {
			s.Close()
		}
		t.Error(err)
	}
	if err := other.Create("/a", nil); err != nil {
		t.Fatal(err)
	}
	same(t, "the other server", crashed(t, zkserver.SnapshotName(file), zkserver.Config{}), other)
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(zkserver.SnapshotName(file), []byte("cut off"), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, zkserver.Config{DataFile: file})
}

// A server with a relative DataFile goes on when its program changes the directory. The line to break is the call of
// filepath.Abs in target.
func TestTheDirectoryChanges(t *testing.T) {
	t.Chdir(t.TempDir())
	s := start(t, zkserver.Config{DataFile: "data"})
	t.Chdir(t.TempDir())
	s.Renew()
	if err := s.Create("/a", nil); err != nil {
		t.Error(err)
	}
}
