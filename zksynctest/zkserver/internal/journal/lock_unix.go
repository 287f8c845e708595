//go:build unix && !solaris && !aix

package journal

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// lockFile takes a lock on the file itself, and not on a name of it: links and removed
// files do not get around it. It goes with the process, however the process ends.
func lockFile(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrInUse
	}
	return os.NewSyscallError("flock", err)
}

// hasLinks reports whether a file has a name.
func hasLinks(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Nlink > 0
}
