package zkserver

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
)

// journal keeps the data file up to date. Transactions are added to it in their
// order, without waiting for anything; whoever is about to send something to a
// client flushes it before. So nothing that a client has seen is missing from
// the file, and the transactions of many clients share one write.
type journal struct {
	files fileSystem
	path  string // without symbolic links
	sync  bool

	added, written atomic.Int64 // bytes, over the life of the server
	size, snapshot atomic.Int64 // of the file, and how much of it is the snapshot

	mu      sync.Mutex // guards what follows; nothing waits while it is held
	pending []byte
	spare   []byte
	stale   bool // the file has nothing to do with what is now: a snapshot is wanted

	// io is held by whoever writes to the file, and only waited for by those who
	// wait for the file anyway. The server's mu is taken after it.
	io   sync.Mutex
	file dataFile // which is locked
	// linked are files that were replaced and have other names: a second server must not
	// begin with one of those as long as this server runs.
	linked []dataFile
	batch  []byte
	err    error // the file is of no use any more
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
	// One write, because a frame is cut off only where nobody was told of it.
	start := j.size.Load()
	j.batch = append(appendBatch(j.batch[:0], start), b...)
	n, err := j.file.Write(j.batch)
	if cap(j.batch) > keptBuffer {
		j.batch = nil
	}
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

// snapshotName returns the name under which a new snapshot of the file path is written.
// It is a name that nobody gives to a data file.
func snapshotName(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".zkserver-snapshot")
}

// replace makes b the content of the file, all of it or nothing. The lock is on the new
// file before it has the name.
func (j *journal) replace(b []byte) error {
	if same, err := j.files.names(j.path, j.file); err != nil {
		return err
	} else if !same {
		return fmt.Errorf("somebody has removed %s or put another file in its place, which is left as it is", j.path)
	}
	fresh := snapshotName(j.path)
	f, err := j.files.open(fresh, true)
	if err != nil {
		return err
	}
	if err = j.files.lock(f); err == nil {
		_, err = f.Write(b)
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = j.files.rename(fresh, j.path)
	}
	if err != nil {
		f.Close()
		return err
	}
	if j.files.hasNames(j.file) {
		j.linked = append(j.linked, j.file)
	} else {
		j.file.Close()
	}
	j.file = f
	// Without this a crash of the machine may bring the old file back, and take what is
	// written to the new one.
	if err := j.files.syncDir(filepath.Dir(j.path)); err != nil && j.sync {
		return err
	}
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
		// The beginning of a further write says that the last one was complete: damage in it is
		// not taken for a write that a crash has cut short.
		if err == nil {
			_, err = j.file.Write(appendBatch(nil, j.size.Load()))
		}
		if e := j.file.Sync(); err == nil {
			err = e
		}
		if e := j.file.Close(); err == nil {
			err = e
		}
		j.file = nil
	}
	for _, f := range j.linked {
		f.Close()
	}
	j.linked = nil
	return err
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
