package differential

import (
	"fmt"
	"strings"
)

// connectRequest is the first message of a client.
type connectRequest struct {
	zxid     int64
	timeout  int32
	session  int // its number, or one of the constants below
	password string
	readonly string
}

const (
	none     = -1
	stranger = -2 // an id that no session has
)

func newSession() connectRequest {
	return connectRequest{timeout: int32(sessionTimeout.Milliseconds()), session: none, readonly: "false"}
}

// connectStep opens a connection and asks for the session that a line names.
func (r *run) connectStep(i int) error {
	s := &r.steps[i]
	q := newSession()
	q.timeout = int32(s.num("timeout", int64(q.timeout)))
	q.password, q.readonly = s.arg("password", ""), s.arg("readonly", "false")
	var err error
	if q.zxid, err = r.toZxid(s.arg("zxid", "0")); err != nil {
		return err
	}
	if s.op == doResume {
		if q.session = int(s.num("s", int64(s.client))); q.session >= len(r.sessions) {
			q.session = stranger
		}
	}
	c, err := r.open(s.client)
	if err != nil {
		return err
	}
	var was *conn
	if q.session >= 0 {
		was = r.holder(q.session)
	}
	if err := r.connect(c, s.client, q); err != nil || was == nil {
		return err
	}
	if r.out[c.number][0].op == "closed" {
		return nil // the server closed the connection before it looked at the session
	}
	return r.awaitEnd(was)
}

// holder returns the open connection of a session.
func (r *run) holder(session int) *conn {
	for client, c := range r.current {
		if !c.closed && r.owner[client] == session {
			return c
		}
	}
	return nil
}

// connect sends a ConnectRequest and records the answer.
func (r *run) connect(c *conn, client int, q connectRequest) error {
	id, password := int64(0), string(make([]byte, 16))
	if q.session >= 0 {
		id, password = r.sessions[q.session].id, r.sessions[q.session].password
	} else if q.session == stranger {
		id = 0x1234
	}
	switch q.password {
	case "":
	case "zero":
		password = string(make([]byte, 16))
	default:
		password = q.password
	}
	b := record{}.i32(0).i64(q.zxid).i32(q.timeout).i64(id).str(password)
	if q.readonly != "none" {
		b = b.flag(q.readonly == "true")
	}
	if err := c.send(b); err != nil {
		return r.lost(c, err)
	}
	answer, err := c.read()
	if err != nil {
		return r.lost(c, err)
	}
	version, granted, got := answer.i32(), answer.i32(), answer.i64()
	proof, _ := answer.buffer()
	if got != 0 && got != id {
		r.sessions = append(r.sessions, &session{got, string(proof)})
		q.session = len(r.sessions) - 1
	}
	f := frame{op: "connected", fields: []string{
		fmt.Sprintf("version %d timeout %d session %s", version, granted, r.sessionID(got)),
	}}
	switch string(proof) {
	case strings.Repeat("\x00", 16):
		f.fields = append(f.fields, "no password")
	case r.passwordOf(got):
		f.fields = append(f.fields, "its password")
	default:
		f.fields = append(f.fields, fmt.Sprintf("password %x", proof))
	}
	if len(answer.b) > 0 {
		f.fields = append(f.fields, fmt.Sprintf("readonly %v", answer.flag()))
	}
	f.fields = append(f.fields, answer.end())
	r.add(c, f)
	if got == 0 {
		return r.awaitEnd(c)
	}
	r.owner[client] = q.session
	return nil
}
