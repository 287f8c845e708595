package differential

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"time"
)

// These bound the time to an answer or to the end of a connection. A real server with a busy disk
// can be silent for many seconds.
const (
	patience         = time.Minute
	embeddedPatience = 10 * time.Second
)

// target is a server under test.
type target struct {
	name     string
	patience time.Duration
	dial     func() (net.Conn, error)
}

// transcript has the frames of each connection of a run, in the order in which the
// connections were made.
type transcript [][]frame

// conn is one connection of a run.
type conn struct {
	nc       net.Conn
	br       *bufio.Reader
	patience time.Duration
	number   int
	closed   bool
}

// run is the execution of a sequence on one server.
type run struct {
	names
	target
	steps   []step
	conns   []*conn
	current [clients]*conn
	owner   [clients]int // number of the client's latest session
	ended   map[int]bool // sessions that were closed
	out     transcript
}

// sessionTimeout is the default timeout of a line; it is longer than any sequence takes.
const sessionTimeout = 40 * time.Second

// play runs a sequence. The sequence creates only znodes below root, and root's parent must exist.
// The error is about the script or the network; errors of the server are in the transcript.
func (t target) play(steps []step, root string) (transcript, error) {
	r := &run{names: names{root: root}, target: t, steps: steps, ended: map[int]bool{}}
	defer func() {
		for _, c := range r.conns {
			c.nc.Close()
		}
	}()
	if err := r.begin(); err != nil {
		return nil, fmt.Errorf("%s: %w", t.name, err)
	}
	for first := 0; first < len(steps); {
		last := first + 1
		if r.canBatch(first) {
			for last < len(steps) && steps[last].client == steps[first].client && r.canBatch(last) {
				last++
			}
		}
		var err error
		switch s := &steps[first]; s.op {
		case doConnect, doResume:
			err = r.connectStep(first)
		case doDrop:
			r.drop(s.client)
		default:
			err = r.batch(first, last)
		}
		if err != nil {
			return r.out, fmt.Errorf("%s: %s: %w", t.name, steps[first].line, err)
		}
		first = last
	}
	if err := r.end(); err != nil {
		return r.out, fmt.Errorf("%s: %w", t.name, err)
	}
	return r.out, nil
}

// canBatch reports whether a step can share a write with its neighbours. A step that may end the
// connection cannot, because a server may or may not read the steps after it. setACL cannot,
// because a real server checks the steps after it against the old ACL until the new ACL is in the
// tree.
func (r *run) canBatch(i int) bool {
	switch r.steps[i].op {
	case doConnect, doResume, doDrop, doBytes, "closeSession", "auth", "sasl", "op", "setACL":
		return false
	case "createContainer":
		// While it is in progress, a real server treats it as an ephemeral if its flags say so.
		if flags := r.steps[i].num("flags", 0); flags == 1 || flags == 3 {
			return false
		}
	case "multi":
		// The operation without a ttl fails the whole multi. Until the failure is in the tree, the
		// operations after it see the effects of the operations before it.
		for _, sub := range r.steps[i].subs {
			if flags := sub.num("flags", 0); sub.op != "createTTL" && (flags == 5 || flags == 6) {
				return false
			}
		}
	}
	return r.steps[i].num("cut", 0) == 0
}

// begin connects all clients and makes the root of the sequence.
func (r *run) begin() error {
	for client := range clients {
		c, err := r.open(client)
		if err != nil {
			return err
		}
		if err := r.connect(c, client, newSession()); err != nil {
			return err
		}
		if c.closed {
			return fmt.Errorf("no session: %v", r.out)
		}
		if client == 0 {
			if r.base, err = r.ask(c, "exists", "/"); err != nil {
				return err
			}
			if _, err := r.ask(c, "create", r.root); err != nil {
				return err
			}
		}
	}
	return nil
}

// end closes all remaining sessions: first the sessions with a connection.
func (r *run) end() error {
	r.steps = append(slices.Clip(r.steps), goodbyes...)
	last := len(r.steps) - len(goodbyes)
	for client := range clients {
		if r.current[client].closed {
			continue
		}
		if err := r.batch(last+client, last+client+1); err != nil {
			return err
		}
	}
	for number := range r.sessions {
		if r.ended[number] {
			continue
		}
		c, err := r.open(0)
		if err != nil {
			return err
		}
		q := newSession()
		q.session = number
		if err := r.connect(c, 0, q); err != nil {
			return err
		}
		if c.closed {
			continue // the session had already ended
		}
		if err := r.batch(last, last+1); err != nil {
			return err
		}
	}
	return nil
}

var goodbyes = func() (list []step) {
	for client := range clients {
		list = append(list, step{client: client, request: request{op: "closeSession"}})
	}
	return list
}()

// ask sends a request that is not part of the sequence, and returns the zxid of the answer.
func (r *run) ask(c *conn, op, path string) (zxid int64, err error) {
	q := request{op: op, path: path}
	body, err := q.frame(&r.names, 0)
	if err != nil {
		return 0, err
	}
	if err := c.send(body); err != nil {
		return 0, err
	}
	answer, err := c.read()
	if err != nil {
		return 0, err
	}
	answer.i32()
	zxid = answer.i64()
	if code := answer.i32(); code != 0 {
		return 0, fmt.Errorf("%s %s: error %d", op, path, code)
	}
	return zxid, nil
}

// open opens a new connection for a client and drops the client's current connection.
func (r *run) open(client int) (*conn, error) {
	r.drop(client)
	nc, err := r.dial()
	if err != nil {
		return nil, err
	}
	c := &conn{nc: nc, br: bufio.NewReader(nc), patience: r.patience, number: len(r.conns)}
	r.conns = append(r.conns, c)
	r.out = append(r.out, nil)
	r.current[client], r.owner[client] = c, none
	return c, nil
}

func (r *run) drop(client int) {
	if c := r.current[client]; c != nil {
		c.nc.Close()
		c.closed = true
	}
}

func (r *run) add(c *conn, f frame) { r.out[c.number] = append(r.out[c.number], f) }

func (c *conn) send(body []byte) error {
	_, err := c.nc.Write(append(record{}.i32(int32(len(body))), body...))
	return err
}

func (c *conn) read() (*reading, error) {
	_ = c.nc.SetReadDeadline(time.Now().Add(c.patience))
	var head [4]byte
	if _, err := io.ReadFull(c.br, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > 1<<24 {
		return nil, fmt.Errorf("a frame of %d bytes", n)
	}
	body := make([]byte, n)
	_, err := io.ReadFull(c.br, body)
	return &reading{b: body}, err
}
