package zkserver

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// fileSystem is what the data file wants of the operating system. The tests have one
// that loses power.
type fileSystem interface {
	// open opens a file to read and write, and makes an empty one if there is none.
	// With fresh the file is new: a file that has the name is removed, unless another
	// server has its lock, which is errInUse.
	open(path string, fresh bool) (dataFile, error)
	// lock takes the lock of f for this server alone, or returns errInUse. The lock is
	// on the file, whatever names it has, and goes with f and with the process.
	lock(f dataFile) error
	// names reports whether path is a name of f.
	names(path string, f dataFile) (bool, error)
	// hasNames reports whether f has any name left.
	hasNames(f dataFile) bool
	// target is where symbolic links lead from path.
	target(path string) (string, error)
	rename(from, to string) error
	// syncDir makes the names in a directory last.
	syncDir(dir string) error
}

// dataFile is what the journal wants of an open file.
type dataFile interface {
	io.Reader
	io.WriteCloser
	io.Seeker
	Stat() (fs.FileInfo, error)
	Truncate(size int64) error
	Sync() error
}

// errInUse is that somebody else has the lock of a file.
var errInUse = errors.New("another server uses it")

// osFiles are the files of the operating system.
type osFiles struct{}

func (osFiles) open(path string, fresh bool) (dataFile, error) {
	flags := os.O_RDWR | os.O_CREATE
	if fresh {
		if err := removeUnused(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		flags |= os.O_EXCL
	}
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, err // and no *os.File that is nil
	}
	return f, nil
}

// removeUnused removes a file that no server uses.
func removeUnused(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := lockFile(f); err != nil {
		return fmt.Errorf("%s is in the way of a new snapshot: %w", path, err)
	}
	if runtime.GOOS == "windows" {
		f.Close() // an open file cannot be removed there
	}
	return os.Remove(path)
}

func (osFiles) lock(f dataFile) error { return lockFile(f.(*os.File)) }

func (osFiles) names(path string, f dataFile) (bool, error) {
	there, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	open, err := f.Stat()
	return err == nil && os.SameFile(there, open), err
}

func (osFiles) hasNames(f dataFile) bool {
	info, err := f.Stat()
	return err == nil && hasLinks(info)
}

// target is absolute: the program may change its directory.
func (osFiles) target(path string) (string, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

func (osFiles) rename(from, to string) error { return os.Rename(from, to) }

// syncDir leaves out what not every system and file system can do.
func (osFiles) syncDir(name string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := dir.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}
