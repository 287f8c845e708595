package zkserver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// openData reads the data file and opens the journal for what comes. There is
// no state if there was no file yet, or an empty one.
func openData(path string, sync bool) (*state, *journal, error) {
	fail := func(err error) (*state, *journal, error) {
		return nil, nil, fmt.Errorf("zkserver: the data file %s: %w", path, err)
	}
	lock, err := lockFile(path + ".lock")
	if err != nil {
		return fail(err)
	}
	j := &journal{path: path, sync: sync, lock: lock}
	st, err := j.open()
	if err != nil {
		j.unlock()
		if j.file != nil {
			j.file.Close()
		}
		return fail(err)
	}
	return st, j, nil
}

func (j *journal) open() (*state, error) {
	f, err := os.OpenFile(j.path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		j.renew()
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	j.file = f
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
		if err := f.Truncate(l.good); err != nil {
			return nil, err
		}
	}
	if _, err := f.Seek(l.good, 0); err != nil {
		return nil, err
	}
	j.snapshotted(l.snapshot, l.good)
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
func (s *Server) logTxn(t *txn) {
	if s.journal == nil {
		return
	}
	s.journal.append(func(b []byte) []byte {
		b = appendNumber(b, stepZxid, t.zxid)
		if t.ended != 0 {
			b = appendNumber(b, stepEnd, t.ended)
		}
		for _, step := range t.steps {
			b = appendStep(b, step.kind, step.n)
		}
		return b
	})
}

// step is a change to a znode that is to be in the data file.
type step struct {
	kind byte
	n    *node
}

// changed notes one for the end of the transaction.
func (t *txn) changed(kind byte, n *node) {
	if t.s.journal != nil {
		t.steps = append(t.steps, step{kind, n})
	}
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
