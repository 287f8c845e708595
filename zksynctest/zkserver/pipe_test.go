package zkserver

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
)

func testPipe() (a, b *pipeConn) {
	return newPipe(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2})
}

// A pipe delivers all bytes that were written before Close.
func TestPipeDeliversWhatWasWrittenBeforeClose(t *testing.T) {
	a, b := testPipe()
	if a.RemoteAddr().String() != "127.0.0.1:2" || b.RemoteAddr().String() != "127.0.0.1:1" {
		t.Fatalf("%v %v", a.RemoteAddr(), b.RemoteAddr())
	}
	want := bytes.Repeat([]byte("0123456789"), 20_000)
	if n, err := a.Write(want); n != len(want) || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	a.Close()
	got, err := io.ReadAll(b)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if _, err := b.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
		t.Fatalf("write to a closed peer: %v", err)
	}
	for _, op := range []func([]byte) (int, error){a.Read, a.Write} {
		if _, err := op(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Fatalf("on a closed end: %v", err)
		}
	}
}

// CloseWrite of a pipe closes one direction and leaves the other direction open.
func TestPipeHalfClose(t *testing.T) {
	a, b := testPipe()
	_ = a.CloseWrite()
	if _, err := b.Read(make([]byte, 1)); err != io.EOF {
		t.Fatal(err)
	}
	if _, err := b.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if n, err := a.Read(make([]byte, 9)); n != 1 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
}

// The deadlines of a pipe can be set, moved and removed for each direction separately, also while a
// call waits.
func TestPipeDeadlines(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		a, b := testPipe()
		begin := time.Now()
		_ = a.SetReadDeadline(begin.Add(time.Second))
		if _, err := a.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begin) != time.Second {
			t.Fatalf("%v after %v", err, time.Since(begin))
		}
		// A deadline can be removed, can be moved during a call, and does not affect the other
		// direction.
		if _, err := a.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		_ = a.SetReadDeadline(time.Time{})
		got := make(chan error)
		go func() {
			_, err := a.Read(make([]byte, 1))
			got <- err
		}()
		time.Sleep(time.Hour)
		_ = a.SetDeadline(time.Now().Add(-1))
		if err := <-got; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}

		// A writer to a full buffer waits for room or for its deadline.
		begin = time.Now()
		_ = b.SetWriteDeadline(begin.Add(time.Second))
		n, err := b.Write(make([]byte, pipeCapacity+10))
		if n != pipeCapacity || !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begin) != time.Second {
			t.Fatalf("%d, %v after %v", n, err, time.Since(begin))
		}
		_ = b.SetWriteDeadline(time.Time{})
		go func() {
			_, err := b.Write(make([]byte, 10))
			got <- err
		}()
		synctest.Wait()
		_ = a.SetReadDeadline(time.Time{})
		if _, err := io.ReadFull(a, make([]byte, pipeCapacity+10)); err != nil {
			t.Fatal(err)
		}
		if err := <-got; err != nil {
			t.Fatal(err)
		}
		go func() {
			_, err := a.Read(make([]byte, 1))
			got <- err
		}()
		synctest.Wait()
		a.Close()
		if err := <-got; !errors.Is(err, net.ErrClosed) {
			t.Fatal(err)
		}
	})
}
