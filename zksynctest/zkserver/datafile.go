package zkserver

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/tree"
)

// openData reads the data file and opens the journal for what comes. There is
// no state if there was no file yet, or an empty one.
func openData(files fileSystem, path string, sync bool, notes *logger) (*state, *journal, error) {
	j := &journal{files: files, path: path, sync: sync}
	st, err := j.open(notes)
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
// file that is locked, nobody else has it.
func (j *journal) lock() error {
	for range lockAttempts {
		f, err := j.files.open(j.path, false)
		if err != nil {
			return err
		}
		if err := j.files.lock(f); err != nil {
			f.Close()
			return err
		}
		// A symbolic link stays, and the file that it leads to is replaced: otherwise the
		// first server would go on with the name of the link, and a second server could
		// begin with the file.
		target, err := j.files.target(j.path)
		same := false
		if err == nil {
			same, err = j.files.names(target, f)
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
	return fmt.Errorf("it was replaced %d times while it was opened", lockAttempts)
}

func (j *journal) open(notes *logger) (*state, error) {
	if err := j.lock(); err != nil {
		return nil, err
	}
	f := j.file
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a regular file")
	case info.Size() == 0:
		j.renew()
		return nil, nil
	}
	l, err := load(f)
	if errors.Is(err, ErrCorrupt) {
		return nil, fmt.Errorf("%w; it is left as it is. Start with another file, or, to go on with what is whole, cut it there", err)
	}
	if err != nil {
		return nil, err
	}
	if l.torn {
		// Nobody was told of what the process was writing when it ended.
		notes.print("data", "cut off the last %d bytes of %s, which were being written when the process or the machine ended", info.Size()-l.good, j.path)
		if err := f.Truncate(l.good); err != nil {
			return nil, err
		}
	}
	if _, err := f.Seek(l.good, io.SeekStart); err != nil {
		return nil, err
	}
	if j.sync {
		// What an earlier server did not sync is read from here on, and what was cut off
		// must not come back behind what is written next.
		if err := f.Sync(); err != nil {
			return nil, err
		}
	}
	j.snapshotted(l.snapshot, l.good)
	if l.version < dataFormat {
		j.renew() // frames of this version do not belong into a file of an older one
	}
	return l.state, nil
}

// log notes a change for the data file. The caller holds mu.
func (s *Server) log(steps func([]byte) []byte) {
	if s.journal != nil {
		s.journal.append(steps)
	}
}

// logTxn notes what a committed transaction has changed. One that failed took a
// zxid all the same.
func (s *Server) logTxn(t *tree.Txn) {
	if s.journal == nil {
		return
	}
	s.journal.append(func(b []byte) []byte {
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

// persist returns when all that happened is in the data file, if there is one. If
// that fails, the server goes down: it must not tell anybody what it will not
// remember.
func (s *Server) persist() error {
	if s.journal == nil {
		return nil
	}
	err := s.journal.flush(s)
	if err != nil {
		s.Stop()
	}
	return err
}
