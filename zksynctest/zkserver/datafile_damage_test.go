package zkserver_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// Only one server at a time can use a DataFile.
func TestOneServerAFile(t *testing.T) {
	s, file := onFile(t, zkserver.Config{})
	if second, err := zkserver.New(zkserver.Config{DataFile: file}); err == nil || !strings.Contains(err.Error(), "another server uses it") {
		if err == nil {
			second.Close()
		}
		t.Errorf("%v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	start(t, zkserver.Config{DataFile: file})
}

// damaged starts a server on b, and checks that a refused file is unchanged.
func damaged(t *testing.T, file string, b []byte) (*zkserver.Server, error) {
	t.Helper()
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := zkserver.New(zkserver.Config{DataFile: file})
	if err != nil {
		if after, _ := os.ReadFile(file); !bytes.Equal(after, b) {
			t.Fatal("a file that was refused has been changed")
		}
		return nil, err
	}
	return s, s.Close()
}

// damageable returns a file with a snapshot of fresh bytes and later changes.
func damageable(t *testing.T) (file string, whole []byte, fresh int) {
	t.Helper()
	s, file := onFile(t, zkserver.Config{})
	read := func() []byte {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	fresh = len(read())
	r := session(t, s, 10*time.Second)
	r.create("/a", 0)
	r.want(0, zkserver.OpCreate, createRec("/b", strings.Repeat("x", 300), 1)) // longer than the write that the test tears
	whole = read()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return file, whole, fresh
}

// A damaged DataFile is refused with ErrCorrupt. TestDamage changes each byte of a file.
func TestDamage(t *testing.T) {
	file, whole, _ := damageable(t)
	for i := range whole {
		b := bytes.Clone(whole)
		b[i] ^= 0x41
		if _, err := damaged(t, file, b); !errors.Is(err, zkserver.ErrCorrupt) || !strings.Contains(err.Error(), file) {
			t.Fatalf("byte %d of %d changed: %v", i, len(whole), err)
		}
	}
}

// A DataFile with an incomplete write at its end is read up to the last complete change. The test
// cuts a file at each byte.
func TestTornEnds(t *testing.T) {
	file, whole, fresh := damageable(t)
	last := int64(0)
	for n := range whole {
		s, err := damaged(t, file, whole[:n])
		switch {
		case n == 0 && err != nil:
			t.Fatalf("an empty file: %v", err)
		case n > 0 && n < fresh:
			if !errors.Is(err, zkserver.ErrCorrupt) {
				t.Fatalf("%d bytes of %d, of which %d are the snapshot: %v", n, len(whole), fresh, err)
			}
		case n >= fresh:
			if err != nil || s.Zxid() < last {
				t.Fatalf("%d bytes of %d: %v", n, len(whole), err)
			}
			last = s.Zxid()
		}
	}
	if last != 2 { // the session and /a: the last frame was cut
		t.Errorf("zxid %d", last)
	}
	// Later changes replace the part that was cut off.
	if err := os.WriteFile(file, whole[:len(whole)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, zkserver.Config{DataFile: file})
	if err := s.Create("/c", nil); err != nil {
		t.Fatal(err)
	}
	same(t, "behind a torn end", crashed(t, file, zkserver.Config{}), s)
}

// New refuses a DataFile of a newer format, a file of another program, and a directory.
func TestFilesOfOthers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "data")
	newer := append([]byte("zkserver"), 0, 0, 1, 0)
	newer = binary.BigEndian.AppendUint32(newer, crc32.Checksum(newer, crc32.MakeTable(crc32.Castagnoli)))
	if _, err := damaged(t, file, append(newer, 1, 2, 3)); !errors.Is(err, zkserver.ErrNewerFormat) {
		t.Errorf("%v", err)
	}
	if _, err := damaged(t, file, []byte("# not ours, but somebody's\n")); !errors.Is(err, zkserver.ErrCorrupt) {
		t.Errorf("%v", err)
	}
	if _, err := zkserver.New(zkserver.Config{DataFile: t.TempDir()}); err == nil {
		t.Error("a directory was accepted")
	}
	if _, err := zkserver.New(zkserver.Config{DataFile: filepath.Join(file, "x")}); err == nil {
		t.Error("a file in a file was accepted")
	}
}

// A DataFile with one changed bit in its last write is refused if the server ended by Close. The line to break is the one
// with appendBatch in journal.close.
func TestDamageOfTheLastWriteBeforeClose(t *testing.T) {
	s, file := onFile(t, zkserver.Config{DataSync: true})
	if err := s.Create("/zeros", make([]byte, 1100)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b[bytes.Index(b, make([]byte, 1000))-15] ^= 1
	if _, err := damaged(t, file, b); !errors.Is(err, zkserver.ErrCorrupt) {
		t.Error(err)
	}
}

// A DataFile of format version 1 with one changed bit is refused, although zeros and later writes are behind the bit. Files
// of version 1 do not mark the beginning of a write. The line to break is the condition with l.version in load.
func TestDamageInAFileOfTheFirstVersion(t *testing.T) {
	s, file := onFile(t, zkserver.Config{})
	for _, err := range []error{s.Create("/zeros", make([]byte, 1100)), s.Create("/b", nil), s.Create("/c", nil), s.Close()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b = zkserver.Version1(b)
	if _, err := damaged(t, file, b); err != nil {
		t.Fatalf("the whole file: %v", err)
	}
	b[bytes.Index(b, make([]byte, 1000))-15] ^= 1
	if _, err := damaged(t, file, b); !errors.Is(err, zkserver.ErrCorrupt) {
		t.Error(err)
	}
}
