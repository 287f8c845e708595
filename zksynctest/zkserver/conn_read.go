package zkserver

import (
	"encoding/binary"
	"io"
)

func (c *conn) readLoop() {
	defer c.s.wg.Done()
	defer c.end()
	for {
		frame, err := c.nextFrame()
		if err != nil {
			return
		}
		c.awaitReader()
		if !c.serve(frame) {
			// A fault drops all further bytes until the socket is closed.
			_, _ = io.Copy(io.Discard, c.br)
			return
		}
	}
}

// nextFrame reads one request. The returned slice is valid until the next call.
func (c *conn) nextFrame() ([]byte, error) {
	if err := c.await(4); err != nil {
		return nil, err
	}
	if c.fourLetterWord() {
		return nil, io.EOF
	}
	head, _ := c.br.Peek(4)
	n := int(int32(binary.BigEndian.Uint32(head)))
	if n <= 0 || n > c.s.cfg.MaxFrame {
		return nil, io.ErrUnexpectedEOF
	}
	_, _ = c.br.Discard(4)
	if n <= readBuffer {
		if err := c.await(n); err != nil {
			return nil, err
		}
		frame, _ := c.br.Peek(n)
		_, _ = c.br.Discard(n)
		return frame, nil
	}
	c.out.kick()
	return c.readBig(n)
}

// readBig reads a large frame. It allocates memory only as bytes arrive, because a client may
// announce more than it sends.
func (c *conn) readBig(n int) ([]byte, error) {
	frame := c.big[:0]
	for len(frame) < n {
		step := min(n-len(frame), max(readBuffer, len(frame)))
		start := len(frame)
		frame = append(frame, make([]byte, step)...)
		if _, err := io.ReadFull(c.br, frame[start:]); err != nil {
			return nil, err
		}
	}
	if cap(frame) <= keptBuffer {
		c.big = frame
	}
	return frame, nil
}

// await waits until n bytes can be peeked. Before it waits, it wakes the writer, so that the peer
// gets all queued answers.
func (c *conn) await(n int) error {
	if c.br.Buffered() >= n {
		return nil
	}
	c.out.kick()
	_, err := c.br.Peek(n)
	return err
}
