package network

import (
	"encoding/binary"
	"fmt"
	"time"
)

// A Direction says whether a frame goes up, to the server, or down, to the client.
type Direction int

const (
	Up Direction = iota
	Down
)

// String returns the name of the constant.
func (d Direction) String() string {
	if d == Up {
		return "up"
	}
	return "down"
}

// An Address names one frame of a run: frame Index of connection Conn of a client
// in one direction. Conn and Index count from 1. The address of a frame depends on
// its own client alone, so a frame keeps its address when other clients send more
// or less than before.
type Address struct {
	Client, Conn int
	Dir          Direction
	Index        int
}

// String returns the form that ParseAddress reads: "0.1.up.4".
func (a Address) String() string {
	return fmt.Sprintf("%d.%d.%v.%d", a.Client, a.Conn, a.Dir, a.Index)
}

// ParseAddress parses the text of Address.String.
func ParseAddress(text string) (a Address, err error) {
	var dir string
	if _, err := fmt.Sscanf(text+" ", "%d.%d.%s ", &a.Client, &a.Conn, &dir); err != nil {
		return a, fmt.Errorf("address of a frame %q, want one like 0.1.up.4: %w", text, err)
	}
	for _, d := range []Direction{Up, Down} {
		if n, err := fmt.Sscanf(dir, d.String()+".%d", &a.Index); n == 1 && err == nil {
			a.Dir = d
		}
	}
	if a.Conn < 1 || a.Index < 1 || a.String() != text {
		return a, fmt.Errorf("address of a frame %q, want one like 0.1.up.4", text)
	}
	return a, nil
}

// Types of frames that are no request. They have the numbers by which package
// zkserver knows them.
const (
	OpConnect    = -1000 // a ConnectRequest or the answer to one
	OpWatchEvent = -1001
	opPing       = 11
)

const (
	xidWatchEvent = -1
	xidPing       = -2
)

// A Frame is one frame that the network delivers.
type Frame struct {
	Address
	Op      int32 // type of the request, and of an answer the type of the request that it answers
	Xid     int32
	Size    int       // in bytes, without the length prefix
	Session int64     // 0 until the first ConnectResponse
	At      time.Time // when its turn came
	Answers Address   // of an answer: the request that it answers
}

// describe finds out what the next frame of a lane is, and counts the frame.
func (c *Conn) describe(bytes []byte, dir Direction) Frame {
	l := &c.lanes[dir]
	l.count++
	f := Frame{
		Address: Address{Client: c.client.number, Conn: c.serial, Dir: dir, Index: l.count},
		Size:    len(bytes) - 4, Session: c.client.session, At: time.Now(),
	}
	if l.count == 1 {
		f.Op = OpConnect
		if dir == Down {
			f.Answers = Address{Client: c.client.number, Conn: c.serial, Dir: Up, Index: 1}
			if id, ok := sessionIn(bytes); ok {
				c.client.session, f.Session = id, id
			}
		}
		return f
	}
	if len(bytes) < 8 {
		return f
	}
	f.Xid = int32(binary.BigEndian.Uint32(bytes[4:]))
	switch {
	case dir == Up && len(bytes) >= 12:
		f.Op = int32(binary.BigEndian.Uint32(bytes[8:]))
		if f.Xid != xidPing {
			c.asked[f.Xid] = asked{f.Op, f.Address}
		}
	case dir == Down && f.Xid == xidWatchEvent:
		f.Op = OpWatchEvent
	case dir == Down && f.Xid == xidPing:
		f.Op = opPing
	case dir == Down:
		q := c.asked[f.Xid]
		delete(c.asked, f.Xid)
		f.Op, f.Answers = q.op, q.at
	}
	return f
}

// sessionIn reads the session id of a ConnectResponse. A server that refuses has 0.
func sessionIn(response []byte) (id int64, ok bool) {
	if len(response) < 20 {
		return 0, false
	}
	id = int64(binary.BigEndian.Uint64(response[12:]))
	return id, id != 0
}

func isPing(bytes []byte) bool {
	return len(bytes) >= 8 && int32(binary.BigEndian.Uint32(bytes[4:])) == xidPing
}

// undescribe forgets a frame whose turn is put off.
func (c *Conn) undescribe(bytes []byte, f Frame) {
	c.lanes[f.Dir].count--
	if f.Dir == Down && f.Answers != (Address{}) && f.Op != OpConnect {
		c.asked[f.Xid] = asked{f.Op, f.Answers}
	}
}
