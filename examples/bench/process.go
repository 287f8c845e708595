package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// A process is a contender of another language. It reads a job a line and
// answers it with a line:
//
//	row path ops clients sessions backlog servers
//	ok ops nanoseconds [key=value ...] | none | failed text
type process struct {
	label   string
	servers string
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Scanner
}

func startProcess(label, servers, program string, args ...string) (*process, error) {
	p := &process{label: label, servers: servers, command: exec.Command(program, args...)}
	p.command.Stderr = os.Stderr
	in, err := p.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in, p.out = in, bufio.NewScanner(out)
	return p, p.command.Start()
}

func (p *process) name() string { return p.label }

func (p *process) close() error {
	p.in.Close()
	patience := time.AfterFunc(10*time.Second, func() { p.command.Process.Kill() })
	defer patience.Stop()
	return p.command.Wait()
}

func (p *process) run(ctx context.Context, j job) (sample, error) {
	if strings.Contains(j.Row, " ") {
		return sample{}, errNoSuchRow // it is about this library, and its name would be two words of the line
	}
	servers := p.servers
	var metering *proxy
	if j.Row == "barrier" {
		var err error
		if metering, err = newProxy(strings.Split(servers, ",")[0], 0); err != nil {
			return sample{}, err
		}
		defer metering.close()
		servers = metering.addr()
	}
	if _, err := fmt.Fprintln(p.in, j.Row, j.Path, j.Ops, j.Clients, j.Sessions, j.Backlog, servers); err != nil {
		return sample{}, err
	}
	line, err := p.answer(ctx)
	if err != nil {
		return sample{}, err
	}
	s, err := parseAnswer(line)
	if err == nil && metering != nil {
		s.Extra["bytes"] = float64(metering.bytes.Load()) / float64(j.Clients)
	}
	return s, err
}

func (p *process) answer(ctx context.Context) (string, error) {
	stop := context.AfterFunc(ctx, func() { p.command.Process.Kill() })
	defer stop()
	if p.out.Scan() {
		return p.out.Text(), nil
	}
	if ctx.Err() != nil {
		return "", fmt.Errorf("%w: it hung, and was ended", context.Cause(ctx))
	}
	return "", errors.Join(fmt.Errorf("%s has ended", p.label), p.out.Err())
}

func parseAnswer(line string) (sample, error) {
	words := strings.Fields(line)
	switch {
	case line == "none":
		return sample{}, errNoSuchRow
	case len(words) < 3 || words[0] != "ok":
		return sample{}, fmt.Errorf("it says %q", line)
	}
	ops, err := strconv.Atoi(words[1])
	if err != nil {
		return sample{}, fmt.Errorf("it says %q: %w", line, err)
	}
	nanos, err := strconv.ParseInt(words[2], 10, 64)
	if err != nil {
		return sample{}, fmt.Errorf("it says %q: %w", line, err)
	}
	s := sample{Ops: ops, Elapsed: time.Duration(nanos), Extra: make(map[string]float64)}
	for _, word := range words[3:] {
		key, text, _ := strings.Cut(word, "=")
		if s.Extra[key], err = strconv.ParseFloat(text, 64); err != nil {
			return sample{}, fmt.Errorf("it says %q: %w", line, err)
		}
	}
	return s, nil
}
