package differential

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// batch sends steps in one write and reads all answers.
func (r *run) batch(first, last int) error {
	s := &r.steps[first]
	c := r.current[s.client]
	if c.closed {
		r.add(c, frame{step: first + 1, op: "not sent: " + s.op})
		return nil
	}
	closing := s.op == "closeSession"
	var marks []int
	if closing {
		if err := r.fence(); err != nil {
			return err
		}
		for _, list := range r.out {
			marks = append(marks, len(list))
		}
	}
	var out []byte
	for i := first; i < last; i++ {
		s := &r.steps[i]
		if s.op == doBytes {
			raw, err := hex.DecodeString(s.arg("hex", ""))
			if err != nil {
				return err
			}
			out = append(out, raw...)
			continue
		}
		body, err := s.frame(&r.names, int32(i+1))
		if err != nil {
			return err
		}
		out = append(append(out, record{}.i32(int32(len(body)))...), body...)
	}
	if _, err := c.nc.Write(out); err != nil {
		return r.lost(c, err)
	}
	for i := first; i < last && !c.closed; i++ {
		if err := r.awaitAnswer(c, i); err != nil {
			return err
		}
	}
	if !closing {
		return nil
	}
	// The order in which a session's ephemerals are deleted is unspecified.
	if err := r.fence(); err != nil {
		return err
	}
	for i, list := range r.out {
		from := 0
		if i < len(marks) {
			from = marks[i]
		}
		events := 0
		for _, f := range list[from:] {
			if f.op != "event" {
				break
			}
			events++
		}
		slices.SortFunc(list[from:from+events], func(a, b frame) int { return strings.Compare(a.String(), b.String()) })
	}
	return nil
}

// awaitAnswer reads until the answer to a step; if the step ends the connection, it reads until the
// end.
func (r *run) awaitAnswer(c *conn, i int) error {
	s := &r.steps[i]
	if s.op == doBytes {
		return r.awaitEnd(c)
	}
	for {
		answer, err := c.read()
		if err != nil {
			return r.lost(c, err)
		}
		xid, zxid, code := answer.i32(), answer.i64(), answer.i32()
		if xid == eventXid && s.arg("xid", "") != "-1" {
			r.add(c, r.decodeEvent(zxid, code, answer))
			continue
		}
		f := r.decode(i+1, &s.request, zxid, code, answer)
		want := int32(s.num("xid", int64(i+1)))
		if s.op == "ping" {
			want = pingXid
		}
		if xid != want {
			f.fields = append(f.fields, fmt.Sprintf("xid %d and not %d", xid, want))
		}
		r.add(c, f)
		switch {
		case s.op == "closeSession":
			r.ended[r.owner[s.client]] = true
			return r.awaitEnd(c)
		case code == -115, code == -6 && zxid == -1:
			return r.awaitEnd(c)
		}
		return nil
	}
}

const (
	eventXid = -1
	pingXid  = -2
)

// fence sends a ping on every connection and reads until its answer, so that all earlier frames
// have arrived.
func (r *run) fence() error {
	ping := record{}.i32(pingXid).i32(opCodes["ping"])
	for _, c := range r.current {
		if !c.closed {
			if err := c.send(ping); err != nil {
				return r.lost(c, err)
			}
		}
	}
	for _, c := range r.current {
		for !c.closed {
			answer, err := c.read()
			if err != nil {
				if err := r.lost(c, err); err != nil {
					return err
				}
				break
			}
			xid, zxid, code := answer.i32(), answer.i64(), answer.i32()
			if xid == pingXid {
				break
			}
			r.add(c, r.decodeEvent(zxid, code, answer))
		}
	}
	return nil
}

// awaitEnd reads until the expected end of a connection.
func (r *run) awaitEnd(c *conn) error {
	for {
		answer, err := c.read()
		if err != nil {
			return r.lost(c, err)
		}
		raw := hex.EncodeToString(answer.b)
		xid, zxid, code := answer.i32(), answer.i64(), answer.i32()
		if xid != eventXid {
			r.add(c, frame{op: "unasked", fields: []string{raw}})
			continue
		}
		r.add(c, r.decodeEvent(zxid, code, answer))
	}
}

// lost records the way in which a connection ended.
func (r *run) lost(c *conn, err error) error {
	f := frame{op: "closed"}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		f.op = "silent"
	}
	if c.closed {
		return nil
	}
	c.closed = true
	c.nc.Close()
	r.add(c, f)
	return nil
}
