package journal

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/tree"
)

// Journal keeps the data file up to date. Transactions are added to it in their
// order, without waiting for anything; a goroutine that is about to send something to a client flushes it before. So no
// transaction that a client has seen is missing from the file, and the transactions of many clients share one write.
type Journal struct {
	files Files
	path  string // without symbolic links
	sync  bool
	// source makes a snapshot of the server, and calls covered in the moment of which the
	// snapshot is.
	source func(covered func()) []byte

	added, written atomic.Int64 // bytes, over the life of the server
	size, snapshot atomic.Int64 // of the file, and how much of it is the snapshot

	mu      sync.Mutex // guards the next fields; nothing waits while it is held
	pending []byte
	spare   []byte
	stale   bool // the file does not lead to the present state: a snapshot is wanted

	// io is held while the file is written to, and only goroutines that wait for the file
	// take it. The server's mu is taken after it.
	io   sync.Mutex
	file File // which is locked
	// linked are files that were replaced and have other names: a second server must not
	// begin with one of those as long as this server runs.
	linked []File
	batch  []byte
	err    error // the file is of no use any more
}

// keptBatch is the largest buffer that is kept for the next write.
const keptBatch = 64 << 10

// RewriteFloor is how many bytes of changes a data file has at least before a new
// snapshot takes their place; they must also be twice as many as the old snapshot.
const RewriteFloor = 16 << 20

// AppendTxn adds the steps of a committed transaction. A transaction that failed took a
// zxid all the same.
func (j *Journal) AppendTxn(t *tree.Txn) {
	j.Append(func(b []byte) []byte {
		b = appendNumber(b, stepZxid, t.Zxid)
		if t.Ended != 0 {
			b = appendNumber(b, stepEnd, t.Ended)
		}
		for _, step := range t.Steps {
			b = tree.AppendStep(b, step.Kind, step.N)
		}
		return b
	})
}

// AppendSession adds a new session, which has taken a zxid.
func (j *Journal) AppendSession(zxid, id int64, sess Session) {
	j.Append(func(b []byte) []byte { return appendSession(appendNumber(b, stepZxid, zxid), id, sess) })
}

// AppendZxid adds the beginning of an epoch.
func (j *Journal) AppendZxid(zxid int64) {
	j.Append(func(b []byte) []byte { return appendNumber(b, stepZxid, zxid) })
}

// Append adds a frame of steps. The caller holds the server's mu. A nil journal keeps
// nothing.
func (j *Journal) Append(steps func([]byte) []byte) {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	start := len(j.pending)
	b := endDataFrame(steps(beginDataFrame(j.pending)), start)
	j.added.Add(int64(len(b) - start))
	// A snapshot that is wanted has the change. It also has a change that is too long for a frame, in
	// several frames. No frame may follow a change that is not in the file.
	if j.stale = j.stale || len(b)-start-frameExtra > maxDataFrame; j.stale {
		return
	}
	j.pending = b
}

// Flush returns when all earlier changes are in the file, or with the error.
func (j *Journal) Flush() error {
	if j == nil {
		return nil
	}
	target := j.added.Load()
	if j.written.Load() >= target {
		return nil
	}
	j.io.Lock()
	defer j.io.Unlock()
	if j.err != nil || j.written.Load() >= target {
		return j.err
	}
	if j.isStale() || j.changes() > max(RewriteFloor, 2*j.snapshot.Load()) {
		j.err = j.compact()
	} else {
		j.err = j.writePending()
	}
	if j.err != nil {
		j.err = fmt.Errorf("zkserver: the data file: %w", j.err)
	}
	return j.err
}

// Sizes returns how many bytes of the file are the snapshot, and how many are changes.
func (j *Journal) Sizes() (snapshot, changes int64) { return j.snapshot.Load(), j.changes() }

// changes is how many bytes of the file are not the snapshot.
func (j *Journal) changes() int64 { return j.size.Load() - j.snapshot.Load() }

func (j *Journal) snapshotted(snapshot, size int64) {
	j.snapshot.Store(snapshot)
	j.size.Store(size)
}

func (j *Journal) isStale() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.stale
}

func (j *Journal) writePending() error {
	j.mu.Lock()
	b := j.pending
	j.pending, j.spare = j.spare[:0], nil
	j.mu.Unlock()
	// One write, because a frame is cut off only where nobody was told of it.
	start := j.size.Load()
	j.batch = append(appendBatch(j.batch[:0], start), b...)
	n, err := j.file.Write(j.batch)
	if cap(j.batch) > keptBatch {
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
	if cap(b) <= keptBatch {
		j.mu.Lock()
		j.spare = b
		j.mu.Unlock()
	}
	return nil
}

// compact writes a new snapshot into a new file, and puts the file into the place of the
// old file.
func (j *Journal) compact() error {
	covered := int64(0)
	b := j.source(func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.pending, j.stale = nil, false // the snapshot has them
		covered = j.added.Load()
	})
	if err := j.replace(b); err != nil {
		return err
	}
	j.written.Store(covered)
	return nil
}

// SnapshotName returns the name under which a new snapshot of the file path is written.
// No data file should have such a name.
func SnapshotName(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".zkserver-snapshot")
}

// replace makes b the content of the file, all of it or nothing. The lock is on the new
// file before it has the name.
func (j *Journal) replace(b []byte) error {
	if same, err := j.files.Names(j.path, j.file); err != nil {
		return err
	} else if !same {
		return fmt.Errorf("another program has removed or replaced %s; a new file was not changed", j.path)
	}
	fresh := SnapshotName(j.path)
	f, err := j.files.Open(fresh, true)
	if err != nil {
		return err
	}
	if err = j.files.Lock(f); err == nil {
		_, err = f.Write(b)
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = j.files.Rename(fresh, j.path)
	}
	if err != nil {
		f.Close()
		return err
	}
	if j.files.HasNames(j.file) {
		j.linked = append(j.linked, j.file)
	} else {
		j.file.Close()
	}
	j.file = f
	// Without this a crash of the machine may bring the old file back, and lose the
	// writes to the new file.
	if err := j.files.SyncDir(filepath.Dir(j.path)); err != nil && j.sync {
		return err
	}
	j.snapshotted(int64(len(b)), int64(len(b)))
	return nil
}

// Renew asks for a new snapshot.
func (j *Journal) Renew() {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.stale = true
	j.added.Add(1) // so that there is something to flush
}

// Close flushes for the last time. Nothing is added any more.
func (j *Journal) Close() error {
	if j == nil {
		return nil
	}
	err := j.Flush()
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

// Failure is why nothing can be written any more.
func (j *Journal) Failure() error {
	if j == nil {
		return nil
	}
	j.io.Lock()
	defer j.io.Unlock()
	return j.err
}
