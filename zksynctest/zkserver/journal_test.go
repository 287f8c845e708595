package zkserver

import (
	"bytes"
	"errors"
	"io"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/journal"
	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/jute"
	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/tree"
)

// diary records the operations on a data file.
type diary struct {
	mu   sync.Mutex
	log  []string
	full error
}

func (d *diary) note(what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.log = append(d.log, what)
}

// diaryFiles wraps the files of the operating system with a diary.
type diaryFiles struct {
	journal.Files
	d *diary
}

func (fs diaryFiles) Open(path string, fresh bool) (journal.File, error) {
	f, err := fs.Files.Open(path, fresh)
	if err != nil {
		return nil, err
	}
	return diaryFile{f, fs.d}, nil
}

func (fs diaryFiles) Lock(f journal.File) error { return fs.Files.Lock(f.(diaryFile).File) }

// diaryFile wraps an open file with a diary.
type diaryFile struct {
	journal.File
	d *diary
}

func (f diaryFile) Write(b []byte) (int, error) {
	f.d.note("write")
	if f.d.full != nil {
		n, _ := f.File.Write(b[:len(b)/2])
		return n, f.d.full
	}
	return f.File.Write(b)
}

func (f diaryFile) Sync() error {
	f.d.note("sync")
	return f.File.Sync()
}

// told wraps a connection and records each frame that is sent to the client.
type told struct {
	net.Conn
	d *diary
}

func (c told) Write(b []byte) (int, error) {
	c.d.note("told")
	return c.Conn.Write(b)
}

// once is a listener that accepts one connection.
type once struct{ conns chan net.Conn }

func (l once) Accept() (net.Conn, error) {
	c, ok := <-l.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (l once) Close() error {
	defer func() { _ = recover() }() // for a second Close
	close(l.conns)
	return nil
}

func (l once) Addr() net.Addr { return &net.TCPAddr{} }

func onDiary(t *testing.T, cfg Config) (*Server, *diary, net.Conn, <-chan error) {
	t.Helper()
	d := &diary{}
	cfg.DataFile, cfg.files = filepath.Join(t.TempDir(), "data"), diaryFiles{journal.OSFiles{}, d}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	d.log = nil
	client, server := newPipe(&net.TCPAddr{}, &net.TCPAddr{})
	l := once{make(chan net.Conn, 1)}
	l.conns <- told{server, d}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() { client.Close() })
	return s, d, client, served
}

func hello(t *testing.T, c net.Conn) {
	t.Helper()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := c.Write(append([]byte{0, 0, 0, 44}, make([]byte, 44)...)); err != nil {
		t.Fatal(err)
	}
}

// With DataSync, data is on the disk before a client gets an answer.
func TestSyncBeforeTheAnswer(t *testing.T) {
	for sync, want := range map[bool][]string{true: {"write", "sync", "told"}, false: {"write", "told"}} {
		_, d, c, _ := onDiary(t, Config{DataSync: sync})
		hello(t, c)
		if _, err := io.ReadFull(c, make([]byte, 4)); err != nil {
			t.Fatal(err)
		}
		d.mu.Lock()
		if !slices.Equal(d.log, want) {
			t.Errorf("DataSync %v: %v, want %v", sync, d.log, want)
		}
		d.mu.Unlock()
	}
}

// When the disk is full, no client sees data that is not in the file, the server stops and reports
// the reason, and the file keeps its data.
func TestTheDiskIsFull(t *testing.T) {
	s, d, c, served := onDiary(t, Config{})
	if err := s.Create("/before", nil); err != nil {
		t.Fatal(err)
	}
	full := errors.New("no room")
	d.full = full
	hello(t, c)
	if b, err := io.ReadAll(c); len(b) > 0 {
		t.Errorf("the client was told % x, %v", b, err)
	}
	select {
	case err := <-served:
		if !errors.Is(err, full) {
			t.Errorf("Serve returned %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the server goes on")
	}
	for what, err := range map[string]error{
		"Start":  s.Start(),
		"Create": s.Create("/after", nil),
		"Close":  s.Close(),
	} {
		if !errors.Is(err, full) {
			t.Errorf("%s: %v", what, err)
		}
	}
	next, err := New(Config{DataFile: s.cfg.DataFile})
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	if _, ok := next.Get("/before"); !ok || next.Zxid() != 1 {
		t.Errorf("%v, zxid %d", ok, next.Zxid())
	}
}

// Restore fails on a server that has been used.
func TestRestoreWantsANewServer(t *testing.T) {
	s, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Create("/a", nil); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := s.Snapshot(&b); err != nil {
		t.Fatal(err)
	}
	if err := s.Restore(bytes.NewReader(b.Bytes())); !errors.Is(err, errUsed) {
		t.Errorf("into a server in use: %v", err)
	}
	three, err := NewEnsemble(Config{DataFile: filepath.Join(t.TempDir(), "data")}, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer three.Close()
	if err := three.Restore(bytes.NewReader(b.Bytes()[:b.Len()-1])); !errors.Is(err, ErrCorrupt) {
		t.Errorf("without its end: %v", err)
	}
	if err := three.Restore(&b); err != nil {
		t.Fatal(err)
	}
	if _, ok := three.Get("/a"); !ok || three.Create("/b", nil) != nil || three.Zxid() != 1<<32+1 {
		t.Errorf("%v, %#x", ok, three.Zxid())
	}
	if err := three.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := NewEnsemble(Config{DataFile: three.cfg.DataFile}, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if _, ok := again.Get("/a"); !ok || again.Create("/c", nil) != nil || again.Zxid() != 2<<32+1 {
		t.Errorf("on its file: %v, %#x", ok, again.Zxid())
	}
}

// A file of any steps is either refused, or gives a state that a server can run with and that
// survives writing and reading.
func FuzzSteps(f *testing.F) {
	seed := journal.NewState()
	numbered := func(b []byte, kind byte, n int64) []byte { return jute.AppendInt64(append(b, kind), n) }
	session := func(b []byte, id int64) []byte { // with a timeout of a second
		return append(jute.AppendInt64(numbered(b, 12, id), 1000), append([]byte{1}, make([]byte, 15)...)...)
	}
	n := &tree.Node{Path: "/a", Data: []byte("x"), Rights: &jute.OpenACL, Owner: 7}
	put := tree.AppendStep(nil, tree.StepPut, n)
	f.Add(put)
	f.Add(numbered(session(numbered(slices.Clone(put), 1, 9), 7), 8, 7))
	f.Add(tree.AppendStep(slices.Clone(put), tree.StepDelete, n))
	f.Add(tree.AppendStep(tree.AppendStep(nil, tree.StepACL, seed.Tree.Node("/zookeeper/config")), tree.StepData, seed.Tree.Node("/")))
	f.Add(numbered(numbered(tree.AppendStep(nil, tree.StepCount, seed.Tree.Node("/")), 9, 1<<56), 10, 4))
	f.Fuzz(func(t *testing.T, steps []byte) {
		st := journal.NewState()
		if st.Apply(steps) != nil {
			return
		}
		s, err := New(Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		s.mu.Lock()
		err = s.adopt(st)
		s.mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := s.Snapshot(&b); err != nil {
			t.Fatal(err)
		}
		again, err := New(Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		if err := again.Restore(&b); err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		if a, b := s.Everything(), again.Everything(); a != b {
			t.Fatalf("%s\nand then\n%s", a, b)
		}
	})
}
