package zkserver

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// pipeCapacity is the number of bytes that one direction of an in-memory connection buffers before
// a writer blocks, like the buffers of two sockets.
const pipeCapacity = 256 << 10

// pipeConn is one end of an in-memory connection. Unlike net.Pipe it has buffers, so that a peer
// that does not read behaves as over TCP, and the peer can read all bytes that were written before
// Close.
type pipeConn struct {
	in, out       *pipeBuffer
	local, remote net.Addr
}

// newPipe returns two connected ends. local and remote are the addresses of the first end; the
// second end has them swapped.
func newPipe(local, remote net.Addr) (*pipeConn, *pipeConn) {
	a, b := newPipeBuffer(), newPipeBuffer()
	return &pipeConn{in: a, out: b, local: local, remote: remote},
		&pipeConn{in: b, out: a, local: remote, remote: local}
}

func (p *pipeConn) Read(b []byte) (int, error)  { return p.in.read(b) }
func (p *pipeConn) Write(b []byte) (int, error) { return p.out.write(b) }
func (p *pipeConn) LocalAddr() net.Addr         { return p.local }
func (p *pipeConn) RemoteAddr() net.Addr        { return p.remote }

// Close closes both directions. The peer can still read the bytes that were written.
func (p *pipeConn) Close() error {
	p.out.closeWriter()
	p.in.closeReader()
	return nil
}

// CloseWrite closes the direction to the peer. The peer reads EOF after the bytes that were
// written.
func (p *pipeConn) CloseWrite() error {
	p.out.closeWriter()
	return nil
}

func (p *pipeConn) SetDeadline(t time.Time) error {
	p.in.readDeadline.set(t)
	p.out.writeDeadline.set(t)
	return nil
}

func (p *pipeConn) SetReadDeadline(t time.Time) error {
	p.in.readDeadline.set(t)
	return nil
}

func (p *pipeConn) SetWriteDeadline(t time.Time) error {
	p.out.writeDeadline.set(t)
	return nil
}

// pipeBuffer is one direction of a connection.
type pipeBuffer struct {
	mu            sync.Mutex
	changed       sync.Cond
	b             []byte
	start         int  // b[start:] is unread
	writerClosed  bool // the writer has closed this direction
	readerClosed  bool // the reader has closed this direction
	readDeadline  pipeDeadline
	writeDeadline pipeDeadline
}

func newPipeBuffer() *pipeBuffer {
	p := &pipeBuffer{}
	p.changed.L = &p.mu
	p.readDeadline.p, p.writeDeadline.p = p, p
	return p
}

func (p *pipeBuffer) read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.readerClosed:
			return 0, net.ErrClosed
		case p.readDeadline.passed:
			return 0, os.ErrDeadlineExceeded
		case p.start < len(p.b):
			n := copy(b, p.b[p.start:])
			p.start += n
			if p.start == len(p.b) {
				p.b, p.start = p.b[:0], 0
				if cap(p.b) > pipeCapacity/4 {
					p.b = nil // an idle connection should not keep the buffer of one burst
				}
			}
			p.changed.Broadcast()
			return n, nil
		case p.writerClosed:
			return 0, io.EOF
		case len(b) == 0:
			return 0, nil
		}
		p.changed.Wait()
	}
}

func (p *pipeBuffer) write(b []byte) (n int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.writerClosed:
			return n, net.ErrClosed
		case p.writeDeadline.passed:
			return n, os.ErrDeadlineExceeded
		case p.readerClosed:
			return n, os.NewSyscallError("write", syscall.EPIPE)
		case len(b) == 0:
			return n, nil
		}
		if room := pipeCapacity - (len(p.b) - p.start); room > 0 {
			k := min(room, len(b))
			if p.start > 0 && len(p.b)+k > cap(p.b) {
				p.b = p.b[:copy(p.b, p.b[p.start:])]
				p.start = 0
			}
			p.b = append(p.b, b[:k]...)
			b, n = b[k:], n+k
			p.changed.Broadcast()
			continue
		}
		p.changed.Wait()
	}
}

func (p *pipeBuffer) closeWriter() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writerClosed = true
	p.writeDeadline.disarm()
	p.changed.Broadcast()
}

func (p *pipeBuffer) closeReader() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.readerClosed = true
	p.b, p.start = nil, 0
	p.readDeadline.disarm()
	p.changed.Broadcast()
}

// pipeDeadline is guarded by the lock of its buffer.
type pipeDeadline struct {
	p      *pipeBuffer
	timer  *time.Timer
	round  int // detects a timer that was replaced while it fired
	passed bool
}

func (d *pipeDeadline) disarm() {
	d.round++
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}

func (d *pipeDeadline) set(t time.Time) {
	d.p.mu.Lock()
	defer d.p.mu.Unlock()
	d.disarm()
	d.passed = false
	if t.IsZero() || d.p.readerClosed && d.p.writerClosed {
		return
	}
	wait := time.Until(t)
	if wait <= 0 {
		d.passed = true
		d.p.changed.Broadcast()
		return
	}
	round := d.round
	d.timer = time.AfterFunc(wait, func() {
		d.p.mu.Lock()
		defer d.p.mu.Unlock()
		if d.round == round {
			d.passed = true
			d.p.changed.Broadcast()
		}
	})
}
