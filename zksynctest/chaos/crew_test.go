//go:build unix

package chaos

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// crew is the client processes. One goroutine uses it at a time.
type crew struct {
	t       *testing.T
	servers string
	dir     string
	now     []*member
	all     []*member
}

// member is one client process.
type member struct {
	name    string
	command *exec.Cmd
	stop    io.Writer  // a byte asks the process to stop
	ended   chan error // receives the process's result
	killed  bool
	paused  bool // it was paused at least once
}

func newCrew(t *testing.T, servers, dir string, n int) *crew {
	c := &crew{t: t, servers: servers, dir: dir, now: make([]*member, n)}
	t.Cleanup(c.end)
	for i := range n {
		c.start(i)
	}
	return c
}

func (c *crew) start(i int) {
	m := &member{name: fmt.Sprintf("client%d.%d", i, len(c.all)), ended: make(chan error, 1)}
	m.command = exec.Command(os.Args[0])
	m.command.Env = append(os.Environ(), clientEnv+"="+m.name, serversEnv+"="+c.servers, notesEnv+"="+c.notes(m))
	m.command.Stdout, m.command.Stderr = os.Stderr, os.Stderr
	// A client may be killed before it opens its notes. It has none then.
	err := os.WriteFile(c.notes(m), nil, 0o600)
	if err == nil {
		m.stop, err = m.command.StdinPipe() // closes when the test process ends, and then the client ends
	}
	if err == nil {
		err = m.command.Start()
	}
	if err != nil {
		c.t.Errorf("start a client: %v", err)
		return
	}
	go func() { m.ended <- m.command.Wait() }()
	c.now[i] = m
	c.all = append(c.all, m)
}

func (c *crew) notes(m *member) string { return filepath.Join(c.dir, m.name+".notes") }

func (c *crew) kill(i int) {
	m := c.now[i]
	m.killed = true
	m.command.Process.Kill()
	<-m.ended
	m.ended <- nil
}

func (c *crew) pause(i int) {
	c.now[i].paused = true
	c.signal(i, syscall.SIGSTOP)
}

func (c *crew) resume(i int) { c.signal(i, syscall.SIGCONT) }

func (c *crew) signal(i int, s syscall.Signal) {
	if err := c.now[i].command.Process.Signal(s); err != nil {
		c.t.Errorf("%v to %s: %v", s, c.now[i].name, err)
	}
}

// finish asks the clients to stop and waits for their end. A client that has just been started reads
// the request later.
func (c *crew) finish() {
	for _, m := range c.now {
		if _, err := m.stop.Write([]byte{'\n'}); err != nil {
			c.t.Errorf("ask %s to stop: %v", m.name, err)
		}
	}
	patience := time.After(time.Minute)
	for _, m := range c.now {
		select {
		case err := <-m.ended:
			m.ended <- nil
			if err != nil {
				c.t.Errorf("%s: %v", m.name, err)
			}
		case <-patience:
			c.t.Errorf("%s did not stop within a minute; its goroutines are above", m.name)
			m.command.Process.Signal(syscall.SIGQUIT)
			m.killed = true
			<-m.ended
			m.ended <- nil
		}
	}
}

// end kills the remaining processes.
func (c *crew) end() {
	for _, m := range c.all {
		m.command.Process.Kill()
		<-m.ended
	}
}

// diaries reads the notes of all clients.
func (c *crew) diaries() []diary {
	var all []diary
	for _, m := range c.all {
		d, err := readDiary(c.notes(m))
		if err != nil {
			c.t.Error(err)
		}
		d.killed, d.paused = m.killed, m.paused
		all = append(all, d)
	}
	return all
}
