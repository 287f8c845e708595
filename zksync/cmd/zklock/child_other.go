//go:build unix && !linux

package main

import "syscall"

// attributes give the child process a process group of its own, so that all of it can
// be killed.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
