package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
)

// pipes makes a link to the other ends of pipes.
func pipes(t *testing.T) (*Link, <-chan net.Conn) {
	far := make(chan net.Conn, 10)
	l := New(func(context.Context, string, string) (net.Conn, error) {
		a, b := net.Pipe()
		far <- b
		return a, nil
	})
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l, far
}

func dial(t *testing.T, l *Link) net.Conn {
	t.Helper()
	c, err := l.Dial(t.Context(), "tcp", "server")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A cut of a link that is dialed in memory swallows the bytes of a connection in both directions and closes nothing.
func TestCutOfADialedLink(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		l, far := pipes(t)
		near := dial(t, l)
		other := <-far
		if err := l.Cut(); err != nil {
			t.Fatal(err)
		}
		if n, err := near.Write([]byte("into the void")); n != 13 || err != nil {
			t.Errorf("Write: %d, %v", n, err)
		}
		read := make(chan error, 2)
		for _, c := range []net.Conn{near, dial(t, l)} {
			go func() {
				_, err := c.Read(make([]byte, 10))
				read <- err
			}()
		}
		go other.Write([]byte("nor back"))
		synctest.Wait()
		other.Close()
		synctest.Wait()
		if len(read) != 0 || len(far) != 0 {
			t.Fatal("something got through")
		}

		if err := l.Heal(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := <-read; err == nil {
				t.Error("a connection that lost bytes goes on")
			}
		}
		again, other := dial(t, l), <-far
		go again.Write([]byte("hello"))
		if b, err := io.ReadAll(io.LimitReader(other, 5)); string(b) != "hello" || err != nil {
			t.Errorf("after the cut: %q, %v", b, err)
		}
		if err := l.Reset(); err != nil {
			t.Fatal(err)
		}
		if _, err := other.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("after a reset: %v", err)
		}
	})
}

// The server does not learn across a cut that the client has closed its connection.
func TestCutHidesThatADialerLeft(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		l, far := pipes(t)
		near, other := dial(t, l), <-far
		if err := l.Cut(); err != nil {
			t.Fatal(err)
		}
		near.Close()
		ended := make(chan error, 1)
		go func() {
			_, err := other.Read(make([]byte, 1))
			ended <- err
		}()
		synctest.Wait()
		if len(ended) != 0 {
			t.Errorf("the server's end has ended: %v", <-ended)
		}
		if err := l.Heal(); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err != io.EOF {
			t.Errorf("after the cut: %v", err)
		}
	})
}

// Each end of a connection that is dialed in memory learns, behind the last bytes, that the other end has closed it in order.
func TestDialedLinkPassesTheEnd(t *testing.T) {
	for name, leaves := range map[string]func(near, other net.Conn) (left, stayed net.Conn){
		"client": func(near, other net.Conn) (net.Conn, net.Conn) { return near, other },
		"server": func(near, other net.Conn) (net.Conn, net.Conn) { return other, near },
	} {
		t.Run(name, func(t *testing.T) {
			bounds.Bubble(t, func(t *testing.T) {
				l, far := pipes(t)
				l.SetDelay(time.Second)
				left, stayed := leaves(dial(t, l), <-far)
				if _, err := left.Write([]byte("bye")); err != nil {
					t.Fatal(err)
				}
				left.Close()
				_ = stayed.SetReadDeadline(time.Now().Add(time.Hour))
				if b, err := io.ReadAll(stayed); string(b) != "bye" || err != nil {
					t.Errorf("the other end read %q, %v; want bye and the end", b, err)
				}
			})
		})
	}
}

// SetDelay also applies to the bytes that wait: they and the bytes behind them pass at once when the delay ends, and in
// their order.
func TestEndOfADelay(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		l, far := pipes(t)
		near, other := dial(t, l), <-far
		l.SetDelay(time.Hour)
		if _, err := near.Write([]byte("old,")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		begin := time.Now()
		l.SetDelay(time.Second)
		if _, err := near.Write([]byte("new,")); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 8)
		if _, err := io.ReadFull(other, got); string(got) != "old,new," || err != nil || time.Since(begin) != time.Second {
			t.Errorf("%q, error %v, after %v, want old,new, after 1s", got, err, time.Since(begin))
		}
		if _, err := near.Write([]byte("last")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		begin = time.Now()
		l.SetDelay(0)
		if _, err := io.ReadFull(other, got[:4]); string(got[:4]) != "last" || err != nil || time.Since(begin) != 0 {
			t.Errorf("%q, error %v, after %v, want last at once", got[:4], err, time.Since(begin))
		}
	})
}

// Dial returns the error of the target, and ErrClosed when the link is closed.
func TestDialFails(t *testing.T) {
	refused := errors.New("refused")
	l := New(func(context.Context, string, string) (net.Conn, error) { return nil, refused })
	if _, err := l.Dial(t.Context(), "tcp", "server"); err != refused {
		t.Errorf("Dial: %v, want the error of the target", err)
	}
	l, far := pipes(t)
	near := dial(t, l)
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := near.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("Read after Close: %v", err)
	}
	<-far
	if _, err := l.Dial(t.Context(), "tcp", "server"); err != ErrClosed {
		t.Errorf("Dial after Close: %v", err)
	}
	if _, err := (<-far).Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the server's end after Close: %v", err)
	}
}
