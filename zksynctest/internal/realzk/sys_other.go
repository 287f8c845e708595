//go:build !unix

package realzk

import "syscall"

const supported = false

const (
	stopSignal     = syscall.Signal(0)
	continueSignal = syscall.Signal(0)
)

func childAttributes() *syscall.SysProcAttr { return nil }

func isStopped(int) (bool, error) { return false, ErrMissing }
