package realzk

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/internal/proxy"
)

// startTries bounds how often a server is given new ports, when others took
// its own between choosing and listening.
const startTries = 5

// serverPorts are the ports that a server itself listens on.
type serverPorts struct{ client, secure, quorum, election int }

func (p serverPorts) list() []int { return []int{p.client, p.secure, p.quorum, p.election} }

// server is one member, over all the processes that it runs in turn.
type server struct {
	cluster *Cluster
	id      int
	dir     string
	turn    chan struct{} // held by the goroutine that starts, stops or pauses the process

	mu     sync.Mutex
	ports  serverPorts
	proc   *process
	wanted bool // shall run
	paused bool
	// properties are lines of this server's own zoo.cfg, after the common ones.
	properties map[string]string
}

func (s *server) dataDir() string { return filepath.Join(s.dir, "data") }
func (s *server) logPath() string { return filepath.Join(s.dir, "server.log") }

// acquire waits for the turn to change the process.
func (s *server) acquire(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("another call changes server %d: %w", s.id, context.Cause(ctx))
	}
}

func (s *server) release() { <-s.turn }

// state returns the process, nil if no process runs, and whether it is paused.
func (s *server) state() (p *process, paused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil || !s.proc.running() {
		return nil, false
	}
	return s.proc, s.paused
}

// active reports whether the server is meant to run, and is not paused.
func (s *server) active() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wanted && !s.paused
}

func (s *server) setWanted(wanted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted = wanted
	s.paused = false
}

func (s *server) addr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return loopback(s.ports.client)
}

func (s *server) secureAddr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return loopback(s.ports.secure)
}

// start runs the server and waits until it serves, or, where it cannot for
// want of peers, until it answers. The caller has the turn.
func (s *server) start(ctx context.Context) error {
	s.setWanted(true)
	for try := 1; ; try++ {
		err := s.startOnce(ctx, try > 1)
		if err == nil {
			return nil
		}
		if killErr := s.kill(ctx); killErr != nil {
			return errors.Join(err, killErr)
		}
		if !errors.Is(err, errPortTaken) || try == startTries {
			return fmt.Errorf("start server %d: %w", s.id, err)
		}
		s.setWanted(true)
	}
}

// errPortTaken is the error of a start that may be tried again on other ports.
var errPortTaken = errors.New("a port was taken")

func (s *server) startOnce(ctx context.Context, freshPorts bool) error {
	mark := s.logSize()
	if err := s.prepare(freshPorts); err != nil {
		return err
	}
	c := s.cluster
	args := append([]string(nil), jvmFlags...)
	args = append(args, c.config.JVM...)
	args = append(args, "-cp", s.dir+string(os.PathListSeparator)+c.runtime.ClassPath,
		mainClass, filepath.Join(s.dir, "zoo.cfg"))
	proc, err := startProcess(c.runtime.Java, args, s.dir, s.logPath())
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.proc = proc
	s.mu.Unlock()
	nextLook := time.Now().Add(time.Second)
	return poll(ctx, "it to serve", func(ctx context.Context) (bool, error) {
		status, err := askStatus(ctx, s.addr())
		if err == nil && (status.Serving() || !c.canServe(s)) && s.secureListens(ctx) {
			return true, nil
		}
		if !proc.running() {
			if s.portTaken(mark) {
				return false, errPortTaken
			}
			return false, fmt.Errorf("it ended: %v", proc.err)
		}
		// The quorum port is bound by a leader only, which lives on without it.
		if time.Now().After(nextLook) {
			if s.portTaken(mark) {
				return false, errPortTaken
			}
			nextLook = time.Now().Add(time.Second)
		}
		return false, nil
	})
}

// secureListens reports whether the secure port is open, or none is configured. The
// server opens the secure port a moment after the plain one, and already serves the
// plain one in between.
func (s *server) secureListens(ctx context.Context) bool {
	if !s.cluster.config.TLS {
		return true
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.secureAddr())
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// prepare chooses ports, points the links at them, and writes the files.
func (s *server) prepare(freshPorts bool) error {
	s.mu.Lock()
	ports := s.ports
	s.mu.Unlock()
	if ports.client == 0 || freshPorts {
		picked, err := pickPorts(len(ports.list()))
		if err != nil {
			return err
		}
		releasePorts(ports.list()...)
		ports = serverPorts{client: picked[0], secure: picked[1], quorum: picked[2], election: picked[3]}
		s.mu.Lock()
		s.ports = ports
		s.mu.Unlock()
		if err := s.cluster.retarget(s, ports); err != nil {
			return err
		}
	}
	return s.writeFiles(ports)
}

func (s *server) logSize() int64 {
	info, err := os.Stat(s.logPath())
	if err != nil {
		return 0
	}
	return info.Size()
}

// portTaken reports whether the log tells of it after its first mark bytes.
func (s *server) portTaken(mark int64) bool {
	data, err := os.ReadFile(s.logPath())
	if err != nil || int64(len(data)) < mark {
		return false
	}
	return strings.Contains(string(data[mark:]), "java.net.BindException")
}

// kill ends a running process. The caller has the turn.
func (s *server) kill(ctx context.Context) error {
	s.setWanted(false)
	s.mu.Lock()
	proc := s.proc
	s.mu.Unlock()
	if proc == nil {
		return nil
	}
	if err := proc.kill(ctx); err != nil {
		return fmt.Errorf("kill server %d: %w", s.id, err)
	}
	return nil
}

// pause stops the process where it stands. The caller has the turn.
func (s *server) pause(ctx context.Context) error {
	proc, paused := s.state()
	switch {
	case proc == nil:
		return fmt.Errorf("pause server %d: it does not run", s.id)
	case paused:
		return nil
	}
	s.mu.Lock()
	s.paused = true
	s.mu.Unlock()
	if err := proc.pause(ctx); err != nil {
		return fmt.Errorf("pause server %d: %w", s.id, err)
	}
	return nil
}

// resume lets the process go on and waits until it answers; whether it serves
// depends on what its peers did meanwhile. The caller has the turn.
func (s *server) resume(ctx context.Context) error {
	proc, paused := s.state()
	switch {
	case proc == nil:
		return fmt.Errorf("resume server %d: it does not run", s.id)
	case !paused:
		return nil
	}
	if err := proc.resume(); err != nil {
		return fmt.Errorf("resume server %d: %w", s.id, err)
	}
	s.mu.Lock()
	s.paused = false
	s.mu.Unlock()
	err := poll(ctx, "it to answer", func(ctx context.Context) (bool, error) {
		if !proc.running() {
			return false, fmt.Errorf("it ended: %v", proc.err)
		}
		_, err := askStatus(ctx, s.addr())
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("resume server %d: %w", s.id, err)
	}
	return nil
}

// peerLinks are the two links from one server to another.
type peerLinks struct{ quorum, election *proxy.Link }

func (p peerLinks) list() []*proxy.Link { return []*proxy.Link{p.quorum, p.election} }
