package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// openJournal reads the data file and opens the journal for later changes. The state is nil
// if there was no file yet, or an empty one. With sync the file is synced before flush
// returns. snapshot is called for a snapshot: it calls covered in the moment of which the
// snapshot is. note is told what was cut off the file.
func Open(files Files, path string, sync bool, snapshot func(covered func()) []byte, note func(format string, args ...any)) (*State, *Journal, error) {
	j := &Journal{files: files, path: path, sync: sync, source: snapshot}
	st, err := j.open(note)
	if err != nil {
		if j.file != nil {
			j.file.Close()
		}
		return nil, nil, fmt.Errorf("zkserver: the data file %s: %w", path, err)
	}
	return st, j, nil
}

// lockAttempts is how often a file can be replaced between the moments at which it is
// opened and locked. A server replaces its file when megabytes of changes are in it.
const lockAttempts = 100

// lock opens and locks the file that has the path. A server that is about to end may
// replace the file, or remove its lock, between the two: only when the path names the
// file that is locked, no other process has it.
func (j *Journal) lock() error {
	for range lockAttempts {
		f, err := j.files.Open(j.path, false)
		if err != nil {
			return err
		}
		if err := j.files.Lock(f); err != nil {
			f.Close()
			return err
		}
		// A symbolic link stays, and the file that it leads to is replaced: otherwise the
		// first server would go on with the name of the link, and a second server could
		// begin with the file.
		target, err := j.files.Target(j.path)
		same := false
		if err == nil {
			same, err = j.files.Names(target, f)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			f.Close()
			return err
		}
		if same {
			j.file, j.path = f, target
			return nil
		}
		f.Close()
	}
	return fmt.Errorf("the file was replaced %d times while it was opened", lockAttempts)
}

func (j *Journal) open(note func(format string, args ...any)) (*State, error) {
	if err := j.lock(); err != nil {
		return nil, err
	}
	f := j.file
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("not a regular file")
	case info.Size() == 0:
		j.Renew()
		return nil, nil
	}
	l, err := load(f)
	if errors.Is(err, ErrCorrupt) {
		return nil, fmt.Errorf("%w; the file was not changed. Start with another file, or truncate this one there to keep the undamaged part", err)
	}
	if err != nil {
		return nil, err
	}
	if l.torn {
		// No client was told of the write that the process had begun when it ended.
		note("cut off the last %d bytes of %s, which were being written when the process or the machine ended", info.Size()-l.good, j.path)
		if err := f.Truncate(l.good); err != nil {
			return nil, err
		}
	}
	if _, err := f.Seek(l.good, io.SeekStart); err != nil {
		return nil, err
	}
	if j.sync {
		// The changes that an earlier server did not sync are in use from here on, and the
		// bytes that were cut off must not come back behind the next write.
		if err := f.Sync(); err != nil {
			return nil, err
		}
	}
	j.snapshotted(l.snapshot, l.good)
	if l.version < dataFormat {
		j.Renew() // frames of this version do not belong into a file of an older one
	}
	return l.State, nil
}
