//go:build unix && !solaris && !aix

package zkserver

import (
	"errors"
	"os"
	"syscall"
)

// lockFile takes a lock that goes with the process, however it ends. It is on a
// file of its own, because the data file is replaced now and then.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.New("another server uses it")
		}
		return nil, os.NewSyscallError("flock", err)
	}
	return f, nil
}
