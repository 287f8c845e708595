package main

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksynctest"
)

// The limit of -wait includes the time in which zklock connects.
func TestWaitIncludesTheConnect(t *testing.T) {
	srv := zksynctest.Start(t)
	if err := srv.Create("/locks", nil); err != nil {
		t.Fatal(err)
	}
	// A writer of Curator, which stays.
	if err := srv.Create("/locks/a", nil); err != nil {
		t.Fatal(err)
	}
	if err := srv.Create("/locks/a/_c_63a1f1b5-0d5c-4d5e-9b2e-8d3c8a6c5d11-lock-0000000000", nil); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	const slow = 1600 * time.Millisecond
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			time.AfterFunc(slow, func() { relay(c, srv.Addr()) })
		}
	}()
	began := time.Now()
	finish(t, "run", "-servers", l.Addr().String(), "-wait", "2s", "/locks/a", "--", "true")
	if took := time.Since(began); took < slow || took > slow+1700*time.Millisecond {
		t.Errorf("-wait 2s took %v behind a connect of %v", took, slow)
	}
}

// relay connects c with a server.
func relay(c net.Conn, server string) {
	defer c.Close()
	up, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(up, c)
		up.Close()
	}()
	_, _ = io.Copy(c, up)
}
