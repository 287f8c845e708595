package realzk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const supported = true

const (
	stopSignal     = syscall.SIGSTOP
	continueSignal = syscall.SIGCONT
)

// childAttributes keeps an interrupt typed at the terminal from the servers,
// which the test still wants to stop in its own order, and has the kernel kill
// them if the test binary dies before it could.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// isStopped reports whether every thread of a process stands still.
func isStopped(pid int) (bool, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(files) == 0 {
		return false, fmt.Errorf("process %d has no threads: %w", pid, err)
	}
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil // a thread ended meanwhile; look again
		}
		if err != nil {
			return false, err
		}
		// The state follows the program name, which may itself hold brackets.
		text := string(stat)
		end := strings.LastIndexByte(text, ')')
		if end < 0 || end+2 >= len(text) || text[end+2] != 'T' {
			return false, nil
		}
	}
	return true, nil
}
