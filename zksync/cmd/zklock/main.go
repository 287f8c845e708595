// Command zklock holds locks of a ZooKeeper ensemble while a command runs, as flock does
// on one machine, and shows and breaks the locks of all clients: this toolkit's,
// Curator's, kazoo's and go-zookeeper's.
//
//	zklock run /locks/backup -- pg_dump mydb
//	zklock run -elect /scheduler -- ./scheduler --foreground
//	zklock who /locks/backup
//
// Install it by
//
//	go install github.com/go-zksync/toolkit/zksync/cmd/zklock@latest
//
// "zklock help" prints the manual.
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
)

func main() {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(sig) { // nohup ignores HUP, for this process and the command
			signal.Notify(signals, sig)
		}
	}
	go func() {
		sig, _ := (<-signals).(syscall.Signal)
		cancel(signalError{sig})
	}()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// subcommands are the commands that need an ensemble.
var subcommands = map[string]func() subcommand{
	"run":   func() subcommand { return &runCommand{} },
	"ls":    func() subcommand { return &lsCommand{} },
	"who":   func() subcommand { return &whoCommand{} },
	"watch": func() subcommand { return &watchCommand{} },
	"break": func() subcommand { return &breakCommand{} },
}

// run returns the exit status of zklock. An output that could not be written is no success.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	out := &output{w: stdout}
	status := call(ctx, args, stdin, out, stderr)
	if out.err != nil && (status == 0 || status == statusConflict) {
		return (&program{stderr: stderr}).failed(ctx, out.err)
	}
	return status
}

// call is run without the check of the output.
func call(ctx context.Context, args []string, stdin io.Reader, stdout *output, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return statusUsage
	}
	name, args := args[0], args[1:]
	switch name {
	case "help", "-h", "-help", "--help":
		return help(args, stdout, stderr)
	case "completion":
		return completion(args, stdout, stderr)
	}
	create, ok := subcommands[name]
	if !ok {
		fmt.Fprintf(stderr, "zklock: there is no command %q\n%s", name, usage)
		return statusUsage
	}
	p, c := &program{stdin: stdin, stdout: stdout, stderr: stderr}, create()
	fs := p.flagSet(name, c)
	fs.SetOutput(io.Discard)
	rest, err := parseAll(fs, args)
	if errors.Is(err, flag.ErrHelp) {
		return help([]string{name}, stdout, stderr)
	}
	if err == nil {
		err = c.parse(rest)
	}
	if err == nil {
		err = p.ensemble.check()
	}
	if err != nil {
		fmt.Fprintf(stderr, "zklock %s: %v; see zklock help %s\n", name, err, name)
		return statusUsage
	}
	if _, ok := c.(*runCommand); ok {
		p.stdout = stdout.w // run prints nothing but the output of its command
	}
	return c.run(ctx, p)
}

// flagSet returns the options of a command.
func (p *program) flagSet(name string, c subcommand) *flag.FlagSet {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	p.ensemble.flags(fs)
	if _, ok := c.(*runCommand); !ok {
		fs.BoolVar(&p.json, "json", false, "print JSON")
	}
	c.flags(fs)
	return fs
}

// parseAll parses options before and behind the first argument, which is a path, and
// returns the arguments that are no options.
func parseAll(fs *flag.FlagSet, args []string) ([]string, error) {
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() == 0 {
		return nil, noneEmpty(fs)
	}
	path, rest := fs.Arg(0), fs.Args()[1:]
	if err := fs.Parse(rest); err != nil {
		return nil, err
	}
	return append([]string{path}, fs.Args()...), noneEmpty(fs)
}

// noneEmpty returns an error if an option was given without a value, as by -id "$ID" where
// the shell has no ID: without -id, break takes the lock away from every holder.
func noneEmpty(fs *flag.FlagSet) (err error) {
	fs.Visit(func(f *flag.Flag) {
		if f.Name != "sem" && f.Value.String() == "" {
			err = fmt.Errorf("the value of -%s is empty; leave -%s out for the default", f.Name, f.Name)
		}
	})
	return err
}
