package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/go-zksync/toolkit/zksync"
)

// tokenEnv is where the command finds its fencing token.
const tokenEnv = "ZKSYNC_TOKEN"

type command struct {
	args           []string
	grace          time.Duration
	stdin          io.Reader
	stdout, stderr io.Writer
}

// run runs the command until it ends, which it is told to when ctx does, and
// returns its exit status.
func (c *command) run(ctx context.Context) int {
	// The kernel ends the command with the thread that started it, should we be
	// killed: a command must not outlive its lock.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	cmd := exec.Command(c.args[0], c.args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.stdin, c.stdout, c.stderr
	cmd.Env = os.Environ()
	if token, ok := zksync.Token(ctx); ok {
		cmd.Env = append(cmd.Env, tokenEnv+"="+strconv.FormatInt(token, 10))
	}
	cmd.SysProcAttr = attributes()
	// Whoever inherited the output may hold it open for longer than the command
	// lives; that is not waited for.
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		fmt.Fprintf(c.stderr, "run: %v\n", err)
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
			return 127
		}
		return 126
	}
	ended := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		c.stop(ctx, cmd.Process.Pid, ended)
	}()
	err := cmd.Wait()
	close(ended)
	<-stopped
	return status(cmd, err)
}

// stop ends the command, and what it has started, when ctx does.
func (c *command) stop(ctx context.Context, pid int, ended <-chan struct{}) {
	select {
	case <-ended:
		return
	case <-ctx.Done():
	}
	if errors.Is(context.Cause(ctx), zksync.ErrLost) {
		fmt.Fprintf(c.stderr, "run: stopping the command: %v\n", context.Cause(ctx))
	}
	// The whole process group: what a script has started counts as well.
	syscall.Kill(-pid, syscall.SIGTERM)
	grace := time.NewTimer(c.grace)
	defer grace.Stop()
	select {
	case <-ended:
	case <-grace.C:
	}
	syscall.Kill(-pid, syscall.SIGKILL)
}

func status(cmd *exec.Cmd, err error) int {
	state := cmd.ProcessState
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	if err != nil && state.ExitCode() < 0 {
		return 126
	}
	return state.ExitCode()
}
