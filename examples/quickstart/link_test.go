package main

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
)

// pipes makes a link to the other ends of pipes.
func pipes() (*link, <-chan net.Conn) {
	far := make(chan net.Conn, 10)
	return newLink(func(context.Context, string, string) (net.Conn, error) {
		a, b := net.Pipe()
		far <- b
		return a, nil
	}), far
}

// A cut swallows the bytes of a connection in both directions and closes nothing.
func TestCutSwallowsAndClosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, far := pipes()
		near, err := l.dial(t.Context(), "tcp", "server")
		if err != nil {
			t.Fatal(err)
		}
		other := <-far
		l.cut()
		if n, err := near.Write([]byte("into the void")); n != 13 || err != nil {
			t.Errorf("Write: %d, %v", n, err)
		}
		read := make(chan error, 1)
		go func() {
			_, err := near.Read(make([]byte, 10))
			read <- err
		}()
		other.Write([]byte("nor back"))
		other.Close()
		dialled := make(chan net.Conn, 1)
		go func() {
			c, err := l.dial(t.Context(), "tcp", "server")
			if err != nil {
				t.Error(err)
			}
			dialled <- c
		}()
		synctest.Wait()
		if len(read) != 0 || len(dialled) != 0 {
			t.Fatal("something got through")
		}

		l.heal()
		if err := <-read; err == nil {
			t.Error("a connection that lost bytes goes on")
		}
		again, other := <-dialled, <-far
		go again.Write([]byte("hello"))
		if b, err := io.ReadAll(io.LimitReader(other, 5)); string(b) != "hello" || err != nil {
			t.Errorf("after the cut: %q, %v", b, err)
		}
		l.reset()
		if _, err := other.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("after a reset: %v", err)
		}
	})
}

// A dial across a cut ends with its context.
func TestDialEndsWithItsContext(t *testing.T) {
	l, _ := pipes()
	l.cut()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.dial(ctx, "tcp", "server"); err == nil {
		t.Error("dialled through a cut")
	}
}
