package session

import (
	"net"
	"sync"
	"time"
)

// A promptConn is a connection whose Close returns at once. The Close of a connection of
// WithDialer may take seconds, for example if a tunnel waits for its peer.
type promptConn struct {
	net.Conn
	once    sync.Once
	closers *sync.WaitGroup // for the goroutine that closes Conn
}

// Close ends the reads and writes of the connection, and closes it in the background.
func (c *promptConn) Close() error {
	c.once.Do(func() {
		c.closers.Go(func() {
			// Before Close: the next connection begins when Read and Write have returned. An error means
			// that the connection knows no deadlines, and then Close ends them.
			_ = c.SetDeadline(time.Unix(1, 0))
			_ = c.Conn.Close()
		})
	})
	return nil
}
