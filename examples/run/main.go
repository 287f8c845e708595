// Command run runs a command while it holds a lock, or leads an election, that
// spans machines: what flock is on one of them.
//
//	run -lock /locks/backup -- pg_dump mydb
//	run -elect /scheduler -- ./scheduler --foreground
//
// The command finds its fencing token in ZKSYNC_TOKEN. When the lock or the
// leadership is lost it is sent TERM, and KILL after a grace time; with -elect it
// is started anew as soon as this process leads again. Its exit status becomes
// that of run, which by itself ends with
//
//	1        the lock is held elsewhere (-try, -wait); another number with -E
//	2        wrong usage
//	3        the ensemble could not be reached or refused us
//	4        the lock was lost while the command ran
//	126, 127 the command could not be started, or was not found
//	128+n    the command died of signal n
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
)

const (
	statusConflict = 1
	statusUsage    = 2
	statusEnsemble = 3
	statusLost     = 4
)

// serversEnv names the ensemble where -servers does not.
const serversEnv = "ZOOKEEPER_SERVERS"

type settings struct {
	servers  string
	timeout  time.Duration
	lock     string
	elect    string
	try      bool
	wait     time.Duration
	grace    time.Duration
	conflict int
	command  []string
}

func main() {
	// The first signal asks the command to stop; it decides when it has.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

func parse(args []string, stderr io.Writer) (settings, error) {
	var s settings
	fs := flag.NewFlagSet("run", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() {
		fmt.Fprintln(stderr, "usage: run (-lock PATH | -elect PATH) [flags] -- command [argument ...]")
		fs.PrintDefaults()
	}
	def := os.Getenv(serversEnv)
	if def == "" {
		def = "127.0.0.1:2181"
	}
	fs.StringVar(&s.servers, "servers", def, "the ensemble as host:port,...; the default is that of $"+serversEnv)
	fs.DurationVar(&s.timeout, "timeout", 10*time.Second, "session `timeout`: how soon others take over from a machine that died")
	fs.StringVar(&s.lock, "lock", "", "hold the lock at this `path` while the command runs")
	fs.StringVar(&s.elect, "elect", "", "run the command whenever this process leads the election at this `path`")
	fs.BoolVar(&s.try, "try", false, "do not wait for the lock")
	fs.DurationVar(&s.wait, "wait", 0, "wait for the lock for at most this `long`; 0 is for ever")
	fs.DurationVar(&s.grace, "grace", 5*time.Second, "how `long` the command has between TERM and KILL")
	fs.IntVar(&s.conflict, "E", statusConflict, "exit `status` when the lock is held elsewhere")
	if err := fs.Parse(args); err != nil {
		return s, err
	}
	s.command = fs.Args()
	problem := ""
	switch {
	case (s.lock == "") == (s.elect == ""):
		problem = "give either -lock or -elect"
	case s.elect != "" && (s.try || s.wait != 0):
		problem = "-try and -wait go with -lock"
	case s.try && s.wait != 0:
		problem = "give either -try or -wait"
	case s.wait < 0:
		problem = fmt.Sprintf("-wait %v is negative", s.wait)
	case s.grace < 0:
		problem = fmt.Sprintf("-grace %v is negative", s.grace)
	case s.conflict < 0 || s.conflict > 255:
		problem = fmt.Sprintf("-E %d is not an exit status, want 0 to 255", s.conflict)
	case len(s.command) == 0:
		problem = "no command to run"
	}
	if problem != "" {
		fmt.Fprintf(stderr, "run: %s\n", problem)
		fs.Usage()
		return s, errors.New(problem)
	}
	return s, nil
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	s, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return statusUsage
	}
	m, err := session.Connect(ctx, s.servers, session.WithTimeout(s.timeout))
	if err != nil {
		fmt.Fprintf(stderr, "run: %v\n", err)
		if errors.Is(err, session.ErrInvalidOption) || errors.Is(err, session.ErrInvalidServers) {
			return statusUsage
		}
		return statusEnsemble
	}
	defer m.Close()
	c := &command{args: s.command, grace: s.grace, stdin: stdin, stdout: stdout, stderr: stderr}
	if s.elect != "" {
		return underElection(ctx, m, s, c, stderr)
	}
	return underLock(ctx, m, s, c, stderr)
}

func underLock(ctx context.Context, m *session.Manager, s settings, c *command, stderr io.Writer) int {
	var opts []zksync.Option
	if s.wait > 0 {
		opts = append(opts, zksync.WithMaxWait(s.wait))
	}
	mu := zksync.NewMutex(m, s.lock, opts...)
	held, err := lock(ctx, mu, s.try)
	switch {
	case errors.Is(err, zksync.ErrMaxWait) || errors.Is(err, errHeld):
		fmt.Fprintf(stderr, "run: %s is held elsewhere\n", s.lock)
		return s.conflict
	case ctx.Err() != nil:
		return signalled(ctx)
	case err != nil:
		return failed(err, stderr)
	}
	status := c.run(held)
	if err := mu.Unlock(); errors.Is(err, zksync.ErrLost) {
		fmt.Fprintf(stderr, "run: the lock was lost while the command ran: %v\n", err)
		return statusLost
	}
	return status
}

var errHeld = errors.New("held elsewhere")

func lock(ctx context.Context, mu *zksync.Mutex, try bool) (context.Context, error) {
	if !try {
		return mu.LockContext(ctx)
	}
	held, ok, err := mu.TryLockContext(ctx)
	if err == nil && !ok {
		err = errHeld
	}
	return held, err
}

func underElection(ctx context.Context, m *session.Manager, s settings, c *command, stderr io.Writer) int {
	status := 0
	err := zksync.NewElection(m, s.elect).Run(ctx, func(ctx context.Context) error {
		status = c.run(ctx)
		return nil
	})
	switch {
	case err == nil:
		return status
	case ctx.Err() != nil && status != 0:
		return status
	case ctx.Err() != nil:
		return signalled(ctx)
	}
	return failed(err, stderr)
}

func failed(err error, stderr io.Writer) int {
	fmt.Fprintf(stderr, "run: %v\n", err)
	if errors.Is(err, session.ErrInvalidPath) {
		return statusUsage
	}
	return statusEnsemble
}

// signalled is the status of a shell command that died of a signal. Which one
// asked us to stop is not told; INT stands for them.
func signalled(context.Context) int { return 128 + int(syscall.SIGINT) }
