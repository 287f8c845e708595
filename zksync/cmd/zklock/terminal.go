package main

import (
	"io"
	"os"
	"syscall"
	"unsafe"
)

// A terminal is the terminal that zklock reads from and whose foreground zklock has.
type terminal struct {
	fd    uintptr
	group int32 // of zklock
}

// foreground returns the terminal of in, or nil if in is no terminal or another process
// group has its foreground.
func foreground(in io.Reader) *terminal {
	f, ok := in.(*os.File)
	if !ok {
		return nil
	}
	t := &terminal{fd: f.Fd(), group: int32(syscall.Getpgrp())}
	var group int32
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, t.fd, syscall.TIOCGPGRP, uintptr(unsafe.Pointer(&group)))
	if errno != 0 || group != t.group {
		return nil
	}
	return t
}

// lend makes a child process start in the foreground. A process of the background is
// stopped when it reads the terminal.
func (t *terminal) lend(attr *syscall.SysProcAttr) {
	if t != nil {
		attr.Foreground, attr.Ctty = true, int(t.fd)
	}
}

// takeBack puts zklock into the foreground again. A process of the background is stopped
// by that unless it ignores SIGTTOU.
func (t *terminal) takeBack() {
	if t == nil {
		return
	}
	group := t.group
	_, _, _ = syscall.Syscall(syscall.SYS_IOCTL, t.fd, syscall.TIOCSPGRP, uintptr(unsafe.Pointer(&group)))
}
