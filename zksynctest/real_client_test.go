package zksynctest

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// rawClient is a session on one connection without a client library, so that a test sees only the
// behaviour of the server.
type rawClient struct {
	nc  net.Conn
	xid int32
}

// Codes of the wire protocol.
const (
	xidPing  = -2
	opCreate = 1
	opPing   = 11
)

// answerTime bounds an answer that must come.
const answerTime = 10 * time.Second

// openSession opens a session with the timeout at an address, with TLS if config is set.
func openSession(t *testing.T, addr string, timeout time.Duration, config *tls.Config) *rawClient {
	t.Helper()
	c, err := trySession(addr, timeout, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.nc.Close() })
	return c
}

func trySession(addr string, timeout time.Duration, config *tls.Config) (*rawClient, error) {
	nc, err := net.DialTimeout("tcp", addr, answerTime)
	if err != nil {
		return nil, err
	}
	if config != nil {
		nc = tls.Client(nc, config)
	}
	c := &rawClient{nc: nc}
	request := binary.BigEndian.AppendUint32(nil, 0) // protocol version
	request = binary.BigEndian.AppendUint64(request, 0)
	request = binary.BigEndian.AppendUint32(request, uint32(timeout.Milliseconds()))
	request = binary.BigEndian.AppendUint64(request, 0) // no session to resume
	request = binary.BigEndian.AppendUint32(request, 16)
	request = append(request, make([]byte, 16)...)
	request = append(request, 0)
	answer, err := c.exchange(request, answerTime)
	if err == nil && len(answer) < 16 {
		err = fmt.Errorf("session refused: %x", answer)
	}
	if err != nil {
		_ = nc.Close()
		return nil, err
	}
	return c, nil
}

// exchange sends one frame and reads the next frame.
func (c *rawClient) exchange(request []byte, within time.Duration) ([]byte, error) {
	_ = c.nc.SetDeadline(time.Now().Add(within))
	frame := binary.BigEndian.AppendUint32(nil, uint32(len(request)))
	if _, err := c.nc.Write(append(frame, request...)); err != nil {
		return nil, err
	}
	var head [4]byte
	if _, err := io.ReadFull(c.nc, head[:]); err != nil {
		return nil, err
	}
	answer := make([]byte, binary.BigEndian.Uint32(head[:]))
	_, err := io.ReadFull(c.nc, answer)
	return answer, err
}

// ping sends a ping, which its server answers without a leader.
func (c *rawClient) ping(within time.Duration) error {
	_, err := c.exchange(header(xidPing, opPing), within)
	return err
}

// create creates a persistent znode, which needs a leader.
func (c *rawClient) create(path string, within time.Duration) error {
	c.xid++
	request := header(c.xid, opCreate)
	request = appendString(request, path)
	request = binary.BigEndian.AppendUint32(request, 0) // no data
	request = binary.BigEndian.AppendUint32(request, 1) // one ACL entry
	request = binary.BigEndian.AppendUint32(request, 31)
	request = appendString(request, "world")
	request = appendString(request, "anyone")
	request = binary.BigEndian.AppendUint32(request, 0) // flags
	answer, err := c.exchange(request, within)
	if err != nil {
		return err
	}
	if len(answer) < 16 {
		return fmt.Errorf("short answer: %x", answer)
	}
	if code := int32(binary.BigEndian.Uint32(answer[12:])); code != 0 {
		return fmt.Errorf("create %s: error %d", path, code)
	}
	return nil
}

func header(xid, op int32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(xid)), uint32(op))
}

func appendString(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
}

// isSilence reports whether an exchange got neither an answer nor the end of the connection.
func isSilence(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// eventually polls until ok returns true, and fails the test after the time within.
func eventually(t *testing.T, what string, within time.Duration, ok func() bool) {
	t.Helper()
	ticker := time.NewTicker(40 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(within)
	for !ok() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("%s: not within %v", what, within)
		}
	}
}
