//go:build unix && !linux

package realzk

import "syscall"

const supported = true

const (
	stopSignal     = syscall.SIGSTOP
	continueSignal = syscall.SIGCONT
)

// childAttributes keeps an interrupt typed at the terminal from the servers.
// Only Linux can also kill them when the test binary dies.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// isStopped takes the kernel's word: SIGSTOP cannot be refused.
func isStopped(int) (bool, error) { return true, nil }
