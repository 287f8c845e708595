package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
)

// tokenEnv is where the child process finds its fencing token.
const tokenEnv = "ZKSYNC_TOKEN"

// A child is the command that runs while something is held.
type child struct {
	args           []string
	grace          time.Duration // between TERM and KILL, while the hold lasts
	stdin          io.Reader
	stdout, stderr io.Writer // of the command
	messages       io.Writer // does not block
	signal         func(*os.Process, syscall.Signal) error
}

// signalGroup sends a signal to the process group of the command. The error says that the
// command itself cannot get the signal, for example because it has become another user.
func signalGroup(command *os.Process, sig syscall.Signal) error {
	err := syscall.Kill(-command.Pid, sig)
	// The call succeeds if any process of the group could be sent the signal, and some
	// systems refuse a signal to a group that has ended.
	switch own := command.Signal(syscall.Signal(0)); {
	case errors.Is(own, os.ErrProcessDone):
		return nil
	case own != nil:
		return own
	case errors.Is(err, syscall.ESRCH):
		return command.Signal(sig) // it has left its group
	}
	return err
}

// run runs the command until it ends, and returns its exit status. The command is told to
// stop when ctx ends. It is killed before the servers can give the lock to another
// client: held is the context of the hold, and s is its session. lost reports that the
// command was told to stop because of a loss.
func (c *child) run(ctx, held context.Context, s *session.Session) (exit int, lost bool) {
	// On Linux the kernel kills the child with the thread that has started it, so the
	// child does not outlive its lock if zklock is killed.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	cmd := exec.Command(c.args[0], c.args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.stdin, c.stdout, c.stderr
	cmd.Env = os.Environ()
	if token, ok := zksync.Token(held); ok {
		cmd.Env = append(cmd.Env, tokenEnv+"="+strconv.FormatInt(token, 10))
	}
	cmd.SysProcAttr = attributes()
	tty := foreground(c.stdin)
	tty.lend(cmd.SysProcAttr)
	// A process that has inherited the output may outlive the command. Its output is
	// not awaited for longer.
	cmd.WaitDelay = time.Second
	// SIGCHLD arrives when Ctrl-Z has stopped the child. The child may be stopped as soon
	// as it runs, so zklock subscribes before it starts the child.
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGCHLD)
	defer signal.Stop(changed)
	if err := cmd.Start(); err != nil {
		fmt.Fprintf(c.messages, "zklock: %v\n", err)
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
			return statusNotFound, false
		}
		return statusNotStarted, false
	}
	// zklock is in the background of the terminal now. A message to a terminal with tostop,
	// and takeBack, would stop zklock, which kills nothing then. The command has not
	// inherited this, because it has started.
	signal.Ignore(syscall.SIGTTOU)
	defer func() {
		// Reset does not end Ignore, and the next command would inherit it.
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTTOU)
		signal.Stop(c)
	}()
	var err error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err = cmd.Wait()
	}()
	lost, left := c.watch(ctx, held, s, cmd.Process, changed, ended)
	tty.takeBack()
	if left {
		fmt.Fprintf(c.messages, "zklock: the command, process %d, runs on without the lock\n", cmd.Process.Pid)
		return statusLost, lost
	}
	return status(cmd, err), lost
}

// watch stops the child process, and the processes that it has started, when they must
// not run any longer. It reports whether a loss was the reason. It continues the child
// when changed reports that the child may have been stopped. left reports that a signal
// came, and that the child runs on, because it could not be killed.
func (c *child) watch(ctx, held context.Context, s *session.Session, command *os.Process, changed <-chan os.Signal, ended <-chan struct{}) (lost, left bool) {
	var kill, resume <-chan time.Time // the end of the grace, and the time of the next SIGCONT
	var resumed time.Time
	stop := ctx.Done()
	for {
		last, first := c.limits(s)
		now := time.Now()
		if !now.Before(last) || held.Err() != nil {
			if c.send(command, syscall.SIGKILL) == nil {
				c.say(held, "killed")
			} else {
				c.say(held, "running on, and another process may get the lock")
			}
			return true, !killed(ctx, ended)
		}
		if kill == nil && !now.Before(first) {
			lost, kill = true, c.terminate(command)
			c.say(held, "asked to stop, because the session may be lost soon")
		}
		next := last
		if kill == nil {
			next = first
		}
		again := time.NewTimer(max(time.Until(next), time.Millisecond))
		select {
		case <-ended:
			again.Stop()
			_ = c.signal(command, syscall.SIGKILL) // processes that the command has left
			return lost, false
		case <-stop:
			stop = nil
			kill = c.terminate(command)
		case <-kill:
			if c.send(command, syscall.SIGKILL) != nil && ctx.Err() != nil {
				again.Stop()
				return lost, !killed(ctx, ended)
			}
			kill = make(chan time.Time) // once is enough
		case <-changed:
			// A stopped child would keep the terminal, and zklock cannot stop with the
			// child without losing the lock. A child of the background that reads the
			// terminal stops again at once: one SIGCONT in a second makes no busy loop.
			if resume == nil {
				resume = time.After(time.Until(resumed.Add(time.Second)))
			}
		case <-resume:
			resume, resumed = nil, time.Now()
			_ = c.signal(command, syscall.SIGCONT) // does nothing to a running child
		case <-held.Done():
		case <-again.C:
		}
		again.Stop()
	}
}

// killed waits until a command that got KILL has ended, and reports false if a signal to
// zklock came and the command has not ended leaveTime after it.
func killed(ctx context.Context, ended <-chan struct{}) bool {
	select {
	case <-ended:
		return true
	case <-ctx.Done():
	}
	select {
	case <-ended:
		return true
	case <-time.After(leaveTime):
		return false
	}
}

// send sends a signal, and tells if the command cannot get it.
func (c *child) send(command *os.Process, sig syscall.Signal) error {
	err := c.signal(command, sig)
	if err != nil {
		fmt.Fprintf(c.messages, "zklock: %s could not be sent to the command, process %d: %v\n", map[syscall.Signal]string{syscall.SIGTERM: "TERM", syscall.SIGKILL: "KILL"}[sig], command.Pid, err)
	}
	return err
}

// terminate asks the command to stop, and continues the command, so that it gets the
// signal also if it was stopped.
func (c *child) terminate(command *os.Process) <-chan time.Time {
	_ = c.send(command, syscall.SIGTERM)
	_ = c.signal(command, syscall.SIGCONT)
	return time.After(c.grace)
}

func (c *child) say(held context.Context, what string) {
	why := context.Cause(held)
	if why == nil {
		why = errors.New("the session has not been proven alive for long")
	}
	fmt.Fprintf(c.messages, "zklock: the command is %s: %v\n", what, why)
}

// limits tells when the child must be dead at the latest, and when the child must be
// asked to stop so that it may end in order until then. Both move on while the session is
// proven alive. The servers give nothing away before the session's Deadline; a twentieth
// of the session timeout is left for the kill itself.
func (c *child) limits(s *session.Session) (last, first time.Time) {
	last = s.Deadline().Add(-s.Timeout() / 20)
	return last, last.Add(-min(c.grace, s.Timeout()/6))
}

func status(cmd *exec.Cmd, err error) int {
	state := cmd.ProcessState
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	if err != nil && state.ExitCode() < 0 {
		return statusNotStarted
	}
	return state.ExitCode()
}
