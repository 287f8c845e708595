package interop

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
)

// A gopeer is the test binary as a peer: the locks of zksync and go-zookeeper in a process that can
// be killed.
type gopeer struct {
	mu      sync.Mutex // guards the fields below
	out     io.Writer
	threads map[string]chan func()
	clients map[string]*goclient
	locks   map[string]golock
}

type goclient struct {
	servers string
	timeout time.Duration
	m       *session.Manager
	conns   []*zk.Conn
}

type golock interface {
	Lock() error
	Unlock() error
}

// mutex adapts a zksync primitive to the interface of go-zookeeper's Lock.
type mutex struct {
	lock   func(context.Context) error
	unlock func() error
}

func (o mutex) Lock() error   { return o.lock(context.Background()) }
func (o mutex) Unlock() error { return o.unlock() }

func servePeer(in io.Reader, out io.Writer) {
	p := &gopeer{out: out, threads: map[string]chan func(){}, clients: map[string]*goclient{}, locks: map[string]golock{}}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		words := strings.Fields(lines.Text())
		thread := words[2]
		if words[1] == "connect" || words[1] == "close" {
			thread = "client " + thread
		}
		tasks := p.threads[thread]
		if tasks == nil {
			tasks = make(chan func(), 64)
			p.threads[thread] = tasks
			go func() {
				for task := range tasks {
					task()
				}
			}()
		}
		tasks <- func() {
			result, err := p.do(words[1], words[2], words[3:])
			if err != nil {
				p.tell(words[0], "error", err.Error())
				return
			}
			p.tell(words[0], "ok", result)
		}
	}
}

func (p *gopeer) tell(id, kind, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, "%s %d %s %s\n", id, time.Now().UnixNano(), kind, strings.ReplaceAll(text, "\n", " "))
}

func (p *gopeer) do(verb, name string, args []string) (string, error) {
	switch verb {
	case "connect":
		return "", p.connect(name, args)
	case "close":
		p.mu.Lock()
		c := p.clients[name]
		p.mu.Unlock()
		for _, conn := range c.conns {
			conn.Close()
		}
		return "", c.m.Close()
	case "new":
		return "", p.make(name, args)
	case "call":
		p.mu.Lock()
		l := p.locks[name]
		p.mu.Unlock()
		return p.call(l, args)
	}
	return "", fmt.Errorf("no command is called %s", verb)
}

func (p *gopeer) connect(name string, args []string) error {
	ms, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	c := &goclient{servers: args[0], timeout: time.Duration(ms) * time.Millisecond}
	if c.m, err = session.Connect(context.Background(), c.servers, session.WithTimeout(c.timeout)); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clients[name] = c
	return nil
}

func (p *gopeer) make(name string, args []string) error {
	p.mu.Lock()
	c := p.clients[args[1]]
	p.mu.Unlock()
	l, err := c.lock(args[0], args[2], args[3:])
	p.mu.Lock()
	defer p.mu.Unlock()
	p.locks[name] = l
	return err
}

func (c *goclient) lock(kind, path string, args []string) (golock, error) {
	switch kind {
	case "zksync-mutex":
		layout := zksync.LayoutCurator
		if slices.Contains(args, "kazoo") {
			layout = zksync.LayoutKazoo
		}
		mu := zksync.NewMutex(c.m, path, zksync.WithLayout(layout))
		return mutex{lock: mu.Lock, unlock: mu.Unlock}, nil
	case "zksync-election":
		e := zksync.NewElection(c.m, path, zksync.WithID("ours"))
		return mutex{lock: func(ctx context.Context) error {
			_, err := e.Campaign(ctx)
			return err
		}, unlock: e.Resign}, nil
	case "go-zookeeper-lock":
		conn, _, err := zk.Connect(strings.Split(c.servers, ","), c.timeout, zk.WithLogInfo(false))
		if err != nil {
			return nil, err
		}
		c.conns = append(c.conns, conn)
		return zk.NewLock(conn, path, zk.WorldACL(zk.PermAll)), nil
	}
	return nil, fmt.Errorf("there is no %s", kind)
}

func (p *gopeer) call(l golock, args []string) (string, error) {
	switch args[0] {
	case "acquire":
		return "", l.Lock()
	case "release":
		return "", l.Unlock()
	case "contend":
		return p.contend(l, args[1:])
	}
	return "", fmt.Errorf("a lock has no %s", args[0])
}

// contend acquires the lock n times, and stops for good during its stop-th hold.
func (p *gopeer) contend(l golock, args []string) (string, error) {
	n, err := strconv.Atoi(args[0])
	stop, bad := strconv.Atoi(args[3])
	if err = errors.Join(err, bad); err != nil {
		return "", err
	}
	w := witness{dir: args[1], name: args[2]}
	for i := 1; i <= n; i++ {
		if err := l.Lock(); err != nil {
			return "", err
		}
		if err := w.enter(); err != nil {
			return "", err
		}
		if i == stop {
			p.tell("0", "holding", w.name)
			select {}
		}
		if err := w.exit(); err != nil {
			return "", err
		}
		if err := l.Unlock(); err != nil {
			return "", err
		}
	}
	return args[0], nil
}
