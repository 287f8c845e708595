package faults

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"
)

// openSession opens a session on a new connection.
func openSession(ctx context.Context, addr string, timeout time.Duration) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(patience))
	be := binary.BigEndian
	request := be.AppendUint32(nil, 44)             // the length
	request = append(request, make([]byte, 4+8)...) // protocol version, zxid seen
	request = be.AppendUint32(request, uint32(timeout.Milliseconds()))
	request = append(request, make([]byte, 8)...)                       // no session yet
	request = append(be.AppendUint32(request, 16), make([]byte, 16)...) // no password yet
	answer := make([]byte, 4+36)
	if _, err = conn.Write(request); err == nil {
		_, err = io.ReadFull(conn, answer)
	}
	if err == nil && be.Uint64(answer[12:]) == 0 {
		err = fmt.Errorf("%s refused to open a session", addr)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}
