package journal

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/jute"
	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/tree"
)

// openStore opens the journal of a store and reads the file into the store.
func openStore(t *testing.T, path string) (*Journal, *tree.Store, error) {
	t.Helper()
	s := &tree.Store{Rules: tree.Rules{Steps: true}}
	st, j, err := Open(OSFiles{}, path, true, func(covered func()) []byte {
		covered()
		now := NewState()
		now.Tree, now.Zxid = s.Tree, s.Zxid
		return now.AppendTo(nil)
	}, t.Logf)
	if err != nil {
		return nil, nil, err
	}
	if st == nil {
		st = NewState()
	}
	s.Tree, s.Zxid = st.Tree, st.Zxid
	t.Cleanup(func() { j.Close() })
	return j, s, nil
}

// set is a transaction that changes the data of the root.
func set(t *testing.T, j *Journal, s *tree.Store, data string) {
	t.Helper()
	txn := s.Begin(tree.SuperUser, time.Now().UnixMilli(), false)
	if _, code := txn.SetData("/", []byte(data), -1); code != 0 {
		t.Fatal(code)
	}
	j.AppendTxn(txn)
	if err := j.Flush(); err != nil {
		t.Fatal(err)
	}
}

// Every flushed transaction is in the file when it is opened again, over snapshots and without Close, and a write that
// was cut short is cut off.
func TestFlushedTransactionsAreRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	j, s, err := openStore(t, path)
	if err != nil {
		t.Fatal(err)
	}
	set(t, j, s, "one")
	j.Renew()
	set(t, j, s, "two")
	set(t, j, s, "three")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	set(t, j, s, "four")
	torn, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for want, content := range map[string][]byte{"three": whole, "four": torn, "three ": torn[:len(torn)-1]} {
		other := filepath.Join(t.TempDir(), "copy")
		if err := os.WriteFile(other, content, 0o600); err != nil {
			t.Fatal(err)
		}
		_, again, err := openStore(t, other)
		if err != nil {
			t.Fatal(err)
		}
		if got := again.Node("/").Data; string(got) != string(bytes.TrimSpace([]byte(want))) {
			t.Errorf("%q was read, want %q", got, want)
		}
	}
}

// A file that another journal has open is refused, and so is a damaged file.
func TestFilesThatAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	j, s, err := openStore(t, path)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := openStore(t, path); !errors.Is(err, ErrInUse) {
		t.Errorf("the second journal: %v, want %v", err, ErrInUse)
	}
	set(t, j, s, "one")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	other := filepath.Join(t.TempDir(), "copy")
	if err := os.WriteFile(other, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := openStore(t, other); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a damaged file: %v, want %v", err, ErrCorrupt)
	}
}

// A change that is too long for a frame is read again from a snapshot.
func TestAChangeThatIsTooLongForAFrame(t *testing.T) {
	defer func(most int) { maxDataFrame = most }(maxDataFrame)
	maxDataFrame = 2 * snapshotFrame
	path := filepath.Join(t.TempDir(), "data")
	j, s, err := openStore(t, path)
	if err != nil {
		t.Fatal(err)
	}
	nodes := func(number int) {
		txn := s.Begin(tree.SuperUser, time.Now().UnixMilli(), true)
		for range number {
			r := jute.Request{Op: jute.OpCreate, Path: "/n", ACL: jute.OpenACL, Flags: jute.FlagSequential, TTL: -1}
			if _, _, code := txn.Create(&r, 0); code != 0 {
				t.Fatal(code)
			}
		}
		j.AppendTxn(txn)
		if err := j.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	nodes(1)
	nodes(2000)
	nodes(2)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "copy")
	if err := os.WriteFile(other, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	_, again, err := openStore(t, other)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := again.Size(), s.Size(); got != want || again.Zxid != s.Zxid {
		t.Errorf("%d znodes at zxid %d were read, want %d at %d", got, again.Zxid, want, s.Zxid)
	}
}
