package main

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

// A proxy stands before a server. It counts the bytes and requests of contenders whose
// connections cannot be wrapped, and delays what passes.
type proxy struct {
	meter
	delay    time.Duration // of each way
	listener net.Listener
	target   string
	wg       sync.WaitGroup
	mu       sync.Mutex
	conns    map[net.Conn]struct{} // nil once closed
}

func newProxy(target string, delay time.Duration) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{delay: delay, listener: l, target: target, conns: make(map[net.Conn]struct{})}
	p.wg.Go(p.accept)
	return p, nil
}

// newProxies returns a proxy for each server, and their addresses in the form of servers.
func newProxies(servers string, delay time.Duration) (all []*proxy, addresses string, err error) {
	var addrs []string
	for target := range strings.SplitSeq(servers, ",") {
		p, err := newProxy(target, delay)
		if err != nil {
			return all, "", err
		}
		all = append(all, p)
		addrs = append(addrs, p.addr())
	}
	return all, strings.Join(addrs, ","), nil
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := p.dial(context.Background(), "tcp", p.target)
		if err != nil {
			client.Close()
			continue
		}
		if !p.keep(client, server) {
			return
		}
		p.wg.Go(func() { p.pipe(server, client) })
		p.wg.Go(func() { p.pipe(client, server) })
	}
}

func (p *proxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		if p.conns == nil {
			c.Close()
		} else {
			p.conns[c] = struct{}{}
		}
	}
	return p.conns != nil
}

// pipe copies until either side closes.
func (p *proxy) pipe(to, from net.Conn) {
	if p.delay > 0 {
		copyDelayed(to, from, p.delay)
	} else {
		io.Copy(to, from)
	}
	to.Close()
	from.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, to)
	delete(p.conns, from)
}

// copyDelayed copies all bytes, each a delay after its arrival. It goes on reading during the
// delay, so that a connection keeps its throughput.
func copyDelayed(to io.Writer, from io.ReadCloser, delay time.Duration) {
	type piece struct {
		data []byte
		due  time.Time
	}
	way := make(chan piece, 1<<12)
	go func() {
		defer close(way)
		for {
			buffer := make([]byte, 16<<10)
			n, err := from.Read(buffer)
			if n > 0 {
				way <- piece{buffer[:n], time.Now().Add(delay)}
			}
			if err != nil {
				return
			}
		}
	}()
	for p := range way {
		time.Sleep(time.Until(p.due))
		if _, err := to.Write(p.data); err != nil {
			from.Close() // the goroutine above ends
			for range way {
			}
			return
		}
	}
}

func (p *proxy) close() error {
	err := p.listener.Close()
	p.mu.Lock()
	for c := range p.conns {
		err = errors.Join(err, c.Close())
	}
	p.conns = nil
	p.mu.Unlock()
	p.wg.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
