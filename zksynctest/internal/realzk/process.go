package realzk

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
)

// process is one running java program.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the program has ended and was reaped
	err  error         // how it ended; read after done
}

// startProcess runs the program, whose output is appended to logPath.
//
// One goroutine, bound to its thread, starts the program and stays until it
// has ended: Linux kills the child of a test binary that dies, but goes by the
// thread that forked, and would kill it when that thread ends as well.
func startProcess(name string, args []string, dir, logPath string) (*process, error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of a server: %w", err)
	}
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Stdout = log
	cmd.Stderr = log
	cmd.SysProcAttr = childAttributes()
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		defer close(p.done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		_ = log.Close()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		<-p.done
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// kill ends the program at once, paused or not, and waits until it is gone.
func (p *process) kill(ctx context.Context) error {
	if !p.running() {
		return nil
	}
	if err := p.cmd.Process.Kill(); err != nil && p.running() {
		return fmt.Errorf("kill process %d: %w", p.cmd.Process.Pid, err)
	}
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("process %d did not end after SIGKILL: %w", p.cmd.Process.Pid, context.Cause(ctx))
	}
}

// pause stops the program where it stands, and waits until it stands.
func (p *process) pause(ctx context.Context) error {
	if err := p.cmd.Process.Signal(stopSignal); err != nil {
		return fmt.Errorf("stop process %d: %w", p.cmd.Process.Pid, err)
	}
	return poll(ctx, fmt.Sprintf("process %d to stop", p.cmd.Process.Pid), func(context.Context) (bool, error) {
		return isStopped(p.cmd.Process.Pid)
	})
}

// resume lets a paused program go on.
func (p *process) resume() error {
	if err := p.cmd.Process.Signal(continueSignal); err != nil {
		return fmt.Errorf("continue process %d: %w", p.cmd.Process.Pid, err)
	}
	return nil
}
