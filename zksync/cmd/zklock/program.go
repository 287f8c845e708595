package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"syscall"
	"time"
)

// A program is one call of zklock.
type program struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	ensemble       ensemble
	json           bool
}

// A subcommand parses its arguments and runs. An error of parse is a wrong usage.
type subcommand interface {
	// flags adds the options.
	flags(fs *flag.FlagSet)
	// parse takes the arguments that are no options.
	parse(args []string) error
	// run returns the exit status.
	run(ctx context.Context, p *program) int
}

// onePath is the parse of commands that take a path alone.
func onePath(args []string) (string, error) {
	if len(args) != 1 {
		return "", fmt.Errorf("%d arguments, want one path", len(args))
	}
	return args[0], nil
}

// The exit statuses of zklock itself.
const (
	statusConflict   = 1
	statusUsage      = 2
	statusEnsemble   = 3
	statusLost       = 4
	statusNotStarted = 126
	statusNotFound   = 127
)

// A signalError is the cause of a context that a signal has ended.
type signalError struct{ signal syscall.Signal }

func (e signalError) Error() string { return e.signal.String() }

// leaveTime is how long a release or a Close may go on after a signal. The lock goes with the
// session if the servers do not answer.
const leaveTime = time.Second

// unlessStopped returns the result of leave, or nil if leave takes longer than leaveTime and a signal has
// come.
func unlessStopped(ctx context.Context, leave func() error) error {
	result := make(chan error, 1)
	go func() { result <- leave() }()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-result:
		return err
	case <-time.After(leaveTime):
		return nil
	}
}

// interrupted is the exit status of a command that a signal has ended.
func interrupted(ctx context.Context) int {
	var e signalError
	if errors.As(context.Cause(ctx), &e) {
		return 128 + int(e.signal)
	}
	return 128 + int(syscall.SIGINT)
}
