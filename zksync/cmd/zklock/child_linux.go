package main

import "syscall"

// attributes give the child process a process group of its own, so that all of it can
// be killed, and kill the child if zklock dies.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
