package main

import (
	"io"
	"net"
	"sync"
	"testing"
)

// A proxy forwards connections to a server until it is silenced: then it forwards
// nothing and closes nothing, like a network that drops every packet.
type proxy struct {
	addr   string
	silent chan struct{}
	once   sync.Once
}

func newProxy(t *testing.T, server string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{addr: l.Addr().String(), silent: make(chan struct{})}
	over := make(chan struct{})
	var all sync.WaitGroup
	t.Cleanup(func() {
		close(over)
		l.Close()
		all.Wait()
	})
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			upstream, err := net.Dial("tcp", server)
			if err != nil {
				client.Close()
				continue
			}
			all.Go(func() {
				<-over
				client.Close()
				upstream.Close()
			})
			all.Go(func() { p.copy(upstream, client) })
			all.Go(func() { p.copy(client, upstream) })
		}
	})
	return p
}

func (p *proxy) copy(to io.Writer, from net.Conn) {
	b := make([]byte, 4096)
	for {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		select {
		case <-p.silent:
			continue
		default:
		}
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}

func (p *proxy) silence() { p.once.Do(func() { close(p.silent) }) }
