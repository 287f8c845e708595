package zkserver

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/tree"
)

// fourLetterWords maps the commands that a connection can send instead of a ConnectRequest to their
// answers. As a length prefix, a command would announce a frame far beyond any limit. A command
// with always set is answered even if the endpoint does not serve.
var fourLetterWords = map[string]struct {
	answer func(*Endpoint, *conn) string
	always bool
}{
	"ruok": {func(*Endpoint, *conn) string { return "imok" }, true},
	"isro": {func(e *Endpoint, _ *conn) string { return e.access() }, true},
	"envi": {func(e *Endpoint, _ *conn) string { return e.s.environment() }, true},
	"gtmk": {func(e *Endpoint, _ *conn) string { return strconv.FormatInt(e.traceMask, 10) }, true},
	"stmk": {func(e *Endpoint, c *conn) string {
		mask, _ := c.br.Peek(8)
		e.traceMask = int64(binary.BigEndian.Uint64(mask))
		return strconv.FormatInt(e.traceMask, 10)
	}, true},
	"srvr": {func(e *Endpoint, _ *conn) string { return e.versionLines() + e.statLines() }, false},
	"stat": {func(e *Endpoint, _ *conn) string {
		return e.versionLines() + "Clients:\n" + e.clientLines(true) + "\n" + e.statLines()
	}, false},
	"cons": {func(e *Endpoint, _ *conn) string { return e.clientLines(false) + "\n" }, false},
	"conf": {func(e *Endpoint, _ *conn) string { return e.confLines() }, false},
	"mntr": {func(e *Endpoint, _ *conn) string { return e.monitorLines() }, false},
	"dump": {func(e *Endpoint, _ *conn) string { return e.dumpLines() }, false},
	"wchs": {func(e *Endpoint, _ *conn) string { return e.watchSummary() }, false},
	"wchc": {func(e *Endpoint, _ *conn) string { return e.watchesByConn() + "\n" }, false},
	"wchp": {func(e *Endpoint, _ *conn) string { return e.watchesByPath() + "\n" }, false},
	"dirs": {func(e *Endpoint, _ *conn) string { return e.directories() }, false},
	"hash": {func(*Endpoint, *conn) string { return "" }, false}, // like a server without digests of the tree
	"srst": {func(e *Endpoint, _ *conn) string {
		e.stats = packetStats{}
		return "Server stats reset.\n"
	}, false},
	"crst": {func(e *Endpoint, _ *conn) string {
		for _, c := range e.s.conns.on(e) {
			c.stats = newConnStats()
		}
		return "Connection stats reset.\n"
	}, false},
}

// notServing is the answer to a command that needs a serving endpoint, without a quorum.
const notServing = "This ZooKeeper instance is not currently serving requests\n"

// fourLetterNames lists the commands for error messages.
func fourLetterNames() string {
	return strings.Join(slices.Sorted(maps.Keys(fourLetterWords)), ", ")
}

// whitelist returns the set of commands that Config.FourLetterWords allows.
func (cfg *Config) whitelist() (map[string]bool, error) {
	if cfg.FourLetterWords == nil {
		return map[string]bool{"srvr": true, "isro": cfg.ReadOnlyMode}, nil
	}
	list := map[string]bool{}
	for _, word := range cfg.FourLetterWords {
		switch {
		case word == "*":
			for word := range fourLetterWords {
				list[word] = true
			}
		case fourLetterWords[word].answer == nil:
			return nil, fmt.Errorf("zkserver: Config.FourLetterWords has %q: it must be \"*\" or one of %s", word, fourLetterNames())
		default:
			list[word] = true
		}
	}
	return list, nil
}

// fourLetterWord answers the command that the connection begins with, and reports whether there was
// one. The server then closes the connection.
func (c *conn) fourLetterWord() bool {
	if c.sess != nil {
		return false
	}
	head, err := c.br.Peek(4)
	if err != nil {
		return false
	}
	word := string(head)
	command, known := fourLetterWords[word]
	if !known {
		return false
	}
	_, _ = c.br.Discard(4)
	s := c.s
	allowed := s.allowed4LW[word]
	if word == "stmk" && allowed {
		if c.await(8) != nil {
			return true
		}
	}
	if !c.admit() {
		return true
	}
	defer s.mu.Unlock()
	c.countReceived()
	text := word + " is not executed because it is not in the whitelist.\n"
	switch serves := c.ep.in != nil || s.readsOnly(c.ep); {
	case allowed && (serves || command.always):
		text = command.answer(c.ep, c)
	case allowed:
		text = notServing
	}
	c.countSent()
	c.out.push([]byte(text), false)
	c.checkQueue()
	return true
}

// version returns a version that go-zookeeper's FLWSrvr can parse; it cannot parse a real server's
// version.
func (s *Server) version() string {
	if s.cfg.Compat38 {
		return "3.8.0-zksynctest, built on 02/25/2022 08:49 UTC"
	}
	return "3.9.4-zksynctest, built on 08/19/2025 19:53 UTC"
}

func (e *Endpoint) versionLines() string {
	text := "Zookeeper version: " + e.s.version() + "\n"
	if e.mode() == "read-only" {
		text += "READ-ONLY mode; serving only read-only clients\n"
	}
	return text
}

// mode returns the role that e believes it has.
func (e *Endpoint) mode() string {
	switch s := e.s; {
	case len(s.en.endpoints) == 1:
		return "standalone"
	case e.in == nil:
		return "read-only"
	case e == e.in.leader:
		return "leader"
	}
	return "follower"
}

// access returns the answer to isro.
func (e *Endpoint) access() string {
	switch {
	case e.in != nil:
		return "rw"
	case e.s.readsOnly(e):
		return "ro"
	}
	return "null"
}

// tree returns e's view of the tree.
func (e *Endpoint) tree() *tree.Tree {
	if e.rep.view != nil {
		return e.rep.view.tree
	}
	return e.s.data.Tree
}

func (e *Endpoint) statLines() string {
	l := &e.stats.latency
	text := fmt.Sprintf("Latency min/avg/max: %d/%s/%d\nReceived: %d\nSent: %d\nConnections: %d\nOutstanding: 0\n"+
		"Zxid: 0x%x\nMode: %s\nNode count: %d\n",
		l.min, l.average(), l.max, e.stats.received, e.stats.sent, len(e.s.conns.on(e)), e.s.en.zxidOf(e.rep), e.mode(), e.tree().Size())
	if e.mode() == "leader" {
		text += "Proposal sizes last/min/max: -1/-1/-1\n"
	}
	return text
}

// clientLines lists the connections, with their sessions unless brief is set.
func (e *Endpoint) clientLines(brief bool) string {
	var b strings.Builder
	for _, c := range e.s.conns.on(e) {
		reading := 1
		if c.sess == nil {
			reading = 0
		}
		fmt.Fprintf(&b, " /%s[%d](queued=0,recved=%d,sent=%d", c.nc.RemoteAddr(), reading, c.stats.received, c.stats.sent)
		if !brief && c.sess != nil {
			st := &c.stats
			fmt.Fprintf(&b, ",sid=0x%x,lop=%s,est=%d,to=%d",
				c.sess.id, c.stats.lastName(), c.established.UnixMilli(), c.timeout.Milliseconds())
			if st.lastXid >= 0 {
				fmt.Fprintf(&b, ",lcxid=0x%x", st.lastXid)
			}
			last := int64(0)
			if !st.lastTime.IsZero() {
				last = e.s.elapsed(st.lastTime)
			}
			fmt.Fprintf(&b, ",lzxid=0x%x,lresp=%d,llat=%d,minlat=%d,avglat=%d,maxlat=%d",
				uint64(st.lastZxid), last, st.lastMs, st.latency.min, st.latency.total/max(st.latency.count, 1), st.latency.max)
		}
		b.WriteString(")\n")
	}
	return b.String()
}

// dumpLines lists the times at which sessions and connections expire without further requests.
func (e *Endpoint) dumpLines() string {
	s, t := e.s, e.tree()
	var b strings.Builder
	date := func(ms int64) string {
		return s.base.Add(time.Duration(ms) * time.Millisecond).UTC().Format("Mon Jan 02 15:04:05 MST 2006")
	}
	b.WriteString("SessionTracker dump:\n")
	var tracked sessionTracker
	switch l := e.in; {
	case l != nil && l.leader == e:
		tracked = l.sessions
		fmt.Fprintf(&b, "Session Sets (%d)/(%d):\n", len(tracked.buckets), len(tracked.tracked))
		for _, due := range slices.Sorted(maps.Keys(tracked.buckets)) {
			fmt.Fprintf(&b, "%d expire at %s:\n", len(tracked.buckets[due]), date(due))
			for _, id := range slices.Sorted(maps.Keys(tracked.buckets[due])) {
				fmt.Fprintf(&b, "\t0x%x\n", id)
			}
		}
	default: // a follower does not know when sessions expire
		fmt.Fprintf(&b, "Global Sessions(%d):\n", len(s.sessions.byID))
		for _, id := range slices.Sorted(maps.Keys(s.sessions.byID)) {
			fmt.Fprintf(&b, "0x%x\t%dms\n", id, s.sessions.byID[id].timeout.Milliseconds())
		}
	}
	fmt.Fprintf(&b, "ephemeral nodes dump:\nSessions with Ephemerals (%d):\n", len(t.Owners()))
	for _, id := range t.Owners() {
		fmt.Fprintf(&b, "0x%x:\n", id)
		for _, path := range t.EphemeralsOf(id) {
			fmt.Fprintf(&b, "\t%s\n", path)
		}
	}
	sets := map[int64][]*conn{}
	for _, c := range e.s.conns.on(e) {
		due := s.elapsed(c.established.Add(2 * handshakeTime))
		if c.sess != nil {
			due = 0
			if ts := tracked.tracked[c.sess.id]; ts != nil {
				due = ts.bucket
			}
		}
		sets[due] = append(sets[due], c)
	}
	fmt.Fprintf(&b, "Connections dump:\nConnections Sets (%d)/(%d):\n", len(sets), len(e.s.conns.on(e)))
	for _, due := range slices.Sorted(maps.Keys(sets)) {
		fmt.Fprintf(&b, "%d expire at %s:\n", len(sets[due]), date(due))
		for _, c := range sets[due] {
			id := int64(0)
			if c.sess != nil {
				id = c.sess.id
			}
			fmt.Fprintf(&b, "\tip: /%s sessionId: 0x%x\n", c.nc.RemoteAddr(), id)
		}
	}
	return b.String()
}
