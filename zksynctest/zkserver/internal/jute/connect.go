package jute

import "time"

// ConnectRequest is the first record of a connection. Clients older than the
// read-only mode leave out its last byte, and expect no such byte in the answer.
type ConnectRequest struct {
	LastZxid  int64
	TimeoutMs int32
	SessionID int64
	Password  []byte
	modern    bool
	ReadOnly  bool // the client accepts a server without a quorum
}

func (q *ConnectRequest) decode(d *Decoder) {
	d.Int32() // the version of the protocol, which no server looks at
	q.LastZxid, q.TimeoutMs, q.SessionID, q.Password = d.Int64(), d.Int32(), d.Int64(), d.Buffer()
	if q.modern = len(d.Rest) > 0; q.modern {
		q.ReadOnly = d.Bool()
	}
}

// AppendResponse appends the record that answers q. A session id of 0 refuses the session.
func (q *ConnectRequest) AppendResponse(b []byte, timeout time.Duration, id int64, password [16]byte, readOnly bool) []byte {
	b = AppendInt32(b, 0)
	b = AppendInt32(b, int32(timeout.Milliseconds()))
	b = AppendInt64(b, id)
	b = AppendBuffer(b, password[:])
	if q.modern {
		b = AppendBool(b, readOnly)
	}
	return b
}

// AppendRefusal appends the answer to a client whose session has ended or never existed.
func (q *ConnectRequest) AppendRefusal(b []byte) []byte {
	return q.AppendResponse(b, 0, 0, [16]byte{}, false)
}
