package zkserver

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
)

// journal keeps the data file up to date. Transactions are added to it in their
// order, without waiting for anything; whoever is about to send something to a
// client flushes it before. So nothing that a client has seen is missing from
// the file, and the transactions of many clients share one write.
type journal struct {
	path string
	sync bool

	added, written atomic.Int64 // bytes, over the life of the server
	size, snapshot atomic.Int64 // of the file, and how much of it is the snapshot

	mu      sync.Mutex // guards what follows; nothing waits while it is held
	pending []byte
	spare   []byte
	stale   bool // the file has nothing to do with what is now: a snapshot is wanted

	// io is held by whoever writes to the file, and only waited for by those who
	// wait for the file anyway. The server's mu is taken after it.
	io   sync.Mutex
	file dataFile
	lock *os.File
	err  error // the file is of no use any more
}

// dataFile is what the journal wants of an open file.
type dataFile interface {
	io.WriteCloser
	Sync() error
}

// rewriteFloor is how many bytes of changes a data file has at least before a new
// snapshot takes their place; they must also be twice as many as the old snapshot.
const rewriteFloor = 16 << 20

// append adds what is between two frames' ends. The caller holds the server's mu.
func (j *journal) append(steps func([]byte) []byte) {
	j.mu.Lock()
	defer j.mu.Unlock()
	start := len(j.pending)
	j.pending = endDataFrame(steps(beginDataFrame(j.pending)), start)
	j.added.Add(int64(len(j.pending) - start))
}

// flush returns when all that was added before is in the file, or cannot be.
func (j *journal) flush(s *Server) error {
	target := j.added.Load()
	if j.written.Load() >= target {
		return nil
	}
	j.io.Lock()
	defer j.io.Unlock()
	if j.err != nil || j.written.Load() >= target {
		return j.err
	}
	if j.isStale() || j.changes() > max(rewriteFloor, 2*j.snapshot.Load()) {
		j.err = j.compact(s)
	} else {
		j.err = j.writePending()
	}
	if j.err != nil {
		j.err = fmt.Errorf("zkserver: the data file: %w", j.err)
	}
	return j.err
}

// changes is how many bytes of the file are not the snapshot.
func (j *journal) changes() int64 { return j.size.Load() - j.snapshot.Load() }

func (j *journal) snapshotted(snapshot, size int64) {
	j.snapshot.Store(snapshot)
	j.size.Store(size)
}

func (j *journal) isStale() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.stale
}

func (j *journal) writePending() error {
	j.mu.Lock()
	b := j.pending
	j.pending, j.spare = j.spare[:0], nil
	j.mu.Unlock()
	n, err := j.file.Write(b)
	j.size.Add(int64(n))
	if err == nil && j.sync {
		err = j.file.Sync()
	}
	if err != nil {
		return err
	}
	j.written.Add(int64(len(b)))
	if cap(b) <= keptBuffer {
		j.mu.Lock()
		j.spare = b
		j.mu.Unlock()
	}
	return nil
}

// compact writes a snapshot of what is now into a new file, and puts that into the
// place of the old one.
func (j *journal) compact(s *Server) error {
	s.mu.Lock()
	b := s.appendSnapshot(nil)
	j.mu.Lock()
	j.pending, j.stale = nil, false // it is in the snapshot
	covered := j.added.Load()
	j.mu.Unlock()
	s.mu.Unlock()
	if err := j.replace(b); err != nil {
		return err
	}
	j.written.Store(covered)
	return nil
}

// replace makes b the content of the file, all of it or nothing.
func (j *journal) replace(b []byte) error {
	f, err := os.OpenFile(j.path+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.Write(b); err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = os.Rename(f.Name(), j.path)
	}
	if err != nil {
		f.Close()
		return err
	}
	// That the new name lasts is up to the directory, which not every system lets
	// us sync.
	if dir, err := os.Open(filepath.Dir(j.path)); err == nil {
		_ = dir.Sync()
		dir.Close()
	}
	if j.file != nil {
		j.file.Close()
	}
	j.file = f
	j.snapshotted(int64(len(b)), int64(len(b)))
	return nil
}

// renew asks for a new snapshot.
func (j *journal) renew() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.stale = true
	j.added.Add(1) // so that there is something to flush
}

// close flushes for the last time. Nothing is added any more.
func (j *journal) close(s *Server) error {
	err := j.flush(s)
	j.io.Lock()
	defer j.io.Unlock()
	if j.file != nil {
		if e := j.file.Sync(); err == nil {
			err = e
		}
		if e := j.file.Close(); err == nil {
			err = e
		}
		j.file = nil
	}
	j.unlock()
	return err
}

func (j *journal) unlock() {
	if j.lock != nil {
		j.lock.Close()
		j.lock = nil
	}
}

// failure is why nothing can be written any more.
func (j *journal) failure() error {
	if j == nil {
		return nil
	}
	j.io.Lock()
	defer j.io.Unlock()
	return j.err
}
