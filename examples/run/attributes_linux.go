package main

import "syscall"

// attributes give the command a process group of its own, so that all of it
// can be ended, and end it with us.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
