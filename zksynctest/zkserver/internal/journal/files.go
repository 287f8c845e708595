package journal

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

// fileSystem has the operations of the operating system that the journal uses. The tests have a
// Files that loses power.
type Files interface {
	// Open opens a file to read and write, and creates an empty file if the name is free.
	// With fresh the file is new: a file that has the name is removed, unless another
	// server has its lock, which is errInUse.
	Open(path string, fresh bool) (File, error)
	// Lock takes the lock of f for this server alone, or returns errInUse. The lock is
	// on the file, under all its names, and goes with f and with the process.
	Lock(f File) error
	// Names reports whether path is a name of f.
	Names(path string, f File) (bool, error)
	// HasNames reports whether f has any name left.
	HasNames(f File) bool
	// Target is where symbolic links lead from path.
	Target(path string) (string, error)
	Rename(from, to string) error
	// SyncDir makes the names in a directory last.
	SyncDir(dir string) error
}

// dataFile is an open file.
type File interface {
	io.Reader
	io.WriteCloser
	io.Seeker
	Stat() (fs.FileInfo, error)
	Truncate(size int64) error
	Sync() error
}

// ErrInUse reports that another server has the lock of a file.
var ErrInUse = errors.New("another server uses it")

// OSFiles are the files of the operating system.
type OSFiles struct{}

func (OSFiles) Open(path string, fresh bool) (File, error) {
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

func (OSFiles) Lock(f File) error { return lockFile(f.(*os.File)) }

func (OSFiles) Names(path string, f File) (bool, error) {
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

func (OSFiles) HasNames(f File) bool {
	info, err := f.Stat()
	return err == nil && hasLinks(info)
}

// Target is absolute: the program may change its directory.
func (OSFiles) Target(path string) (string, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

func (OSFiles) Rename(from, to string) error { return os.Rename(from, to) }

// SyncDir ignores that a system or a file system cannot sync directories.
func (OSFiles) SyncDir(name string) error {
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
