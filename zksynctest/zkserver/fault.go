package zkserver

import (
	"fmt"
	"strings"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/jute"
)

// Fault says where something goes wrong, and what. All of Session, Endpoint, Op,
// Path and Match must match; the zero Fault with an action strikes the next request
// whatsoever.
type Fault struct {
	Session  int64  // 0 means any. For a connect, the session asked for or given.
	Endpoint int    // 0 means any
	Op       OpCode // 0 means any; not looked at OnWatch
	// Path must be equal, or have what stands before a '*' at the end as a prefix;
	// "" means any. A multi matches if one of its operations does, setWatches if
	// one of its paths does, and a sequential create by the name it asks for.
	Path string
	// Match, if it is not nil, has the last word: it sees the request as [Server.Ops]
	// shows it, AfterCommit and BeforeReply with what became of it, and OnWatch the
	// event as an [OpWatchEvent]. It may be asked more than once and must say the
	// same of the same. The server waits for it: it must not call the server.
	Match func(Op) bool
	// Nth is the match at which the fault strikes first; 0 and 1 mean the first.
	Nth int
	// Times is how many matches it strikes from then on: 0 means one, -1 all.
	Times int
	At    Moment
	Do    Action
}

// String describes the fault in a line.
func (f Fault) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v %v", f.Do, f.At)
	if f.Op != 0 {
		fmt.Fprintf(&b, " of %v", f.Op)
	}
	if f.Path != "" {
		fmt.Fprintf(&b, " on %s", f.Path)
	}
	if f.Session != 0 {
		fmt.Fprintf(&b, " of session %#x", f.Session)
	}
	if f.Endpoint != 0 {
		fmt.Fprintf(&b, " at endpoint %d", f.Endpoint)
	}
	if f.Match != nil {
		b.WriteString(" if it matches")
	}
	if f.Nth > 1 {
		fmt.Fprintf(&b, " from match %d on", f.Nth)
	}
	switch {
	case f.Times < 0:
		b.WriteString(", always")
	case f.Times > 1:
		fmt.Fprintf(&b, ", %d times", f.Times)
	}
	return b.String()
}

// Moment is the point in the course of a request, or of a watch event, at which a
// [Fault] strikes.
type Moment int

// The moments. A request that fails goes through them as one that succeeds does,
// and so does one that only reads.
const (
	// BeforeCommit is when the request has come in and nothing has been done, not
	// even touched its session.
	BeforeCommit Moment = iota
	// AfterCommit is when it has been done and its watch events are on their way.
	AfterCommit
	// BeforeReply is when the reply is about to be sent, after all that AfterCommit
	// did.
	BeforeReply
	// OnWatch is when a watch event is about to be sent to Session about Path, after
	// all that was sent on that connection before it.
	OnWatch
)

// String returns the name of the constant.
func (m Moment) String() string {
	switch m {
	case BeforeCommit:
		return "BeforeCommit"
	case AfterCommit:
		return "AfterCommit"
	case BeforeReply:
		return "BeforeReply"
	case OnWatch:
		return "OnWatch"
	}
	return fmt.Sprintf("Moment(%d)", int(m))
}

type actionKind int

const (
	actNothing actionKind = iota
	actDrop
	actDisconnect
	actDelay
	actError
	actHold
	actCall
	actCutOff
)

// Action is what a [Fault] does. The zero Action does nothing, which is of use for
// counting.
type Action struct {
	kind  actionKind
	delay time.Duration
	code  Code
	until <-chan struct{}
	call  func()
	// throttles is set for the error of a throttled request.
	throttles bool
}

// Drop loses the request (BeforeCommit), its reply (AfterCommit and BeforeReply) or
// the event (OnWatch). The connection stays open.
var Drop = Action{kind: actDrop}

// Disconnect closes the connection at that moment. What was sent on it before
// still arrives.
var Disconnect = Action{kind: actDisconnect}

// CutAfterForward cuts the endpoint off from its leader right after it has passed the
// request on: the leader carries the request out, and neither the answer nor the
// change comes back to this endpoint. At the leader itself, the other endpoints have
// its proposal: the next leader commits it. A request that is not for the leader is
// answered. The endpoint is cut off as by [Endpoint.CutFromLeader], until
// [Endpoint.Rejoin]; a server that is no ensemble cuts off the connection alone, as
// [Server.CutFromLeader] does. It strikes BeforeCommit only.
var CutAfterForward = Action{kind: actCutOff}

// Throttle answers [ErrThrottledOp], as a server with throttled_op_wait_time does when
// requests have waited for too long: the request is not carried out, and touches its
// session like any other. Pings, closeSession and new connections are never throttled,
// and do not match. It strikes BeforeCommit only.
var Throttle = Action{kind: actError, code: ErrThrottledOp, throttles: true}

// Delay stops the connection for d of the server's time: neither later requests
// nor later replies and events overtake the one that is delayed. Other connections
// go on.
func Delay(d time.Duration) Action { return Action{kind: actDelay, delay: d} }

// Error answers code. BeforeCommit the request is not carried out, at the later
// moments it has been. A connect is refused as if its session had expired,
// whatever the code. [ErrSessionMoved] closes the connection without an answer, as a
// server does from which the session has moved to another. OnWatch has no answer, and
// Inject panics.
//
// No server sends [ErrRequestTimeout]: the Java client gives it to itself. A server that does not serve
// answers nothing: it closes connections at their ConnectRequest, as [Disconnect] does
// for [OpConnect].
func Error(code int32) Action { return Action{kind: actError, code: Code(code)} }

// Hold stops the connection as Delay does, until the channel is closed.
func Hold(until <-chan struct{}) Action { return Action{kind: actHold, until: until} }

// Call runs f and goes on when it returns; the connection waits as for Delay. f may
// use the server in all ways but Close.
func Call(f func()) Action { return Action{kind: actCall, call: f} }

// String describes the action.
func (a Action) String() string {
	switch a.kind {
	case actDrop:
		return "Drop"
	case actDisconnect:
		return "Disconnect"
	case actDelay:
		return fmt.Sprintf("Delay(%v)", a.delay)
	case actError:
		if a.throttles {
			return "Throttle"
		}
		return fmt.Sprintf("Error(%d)", int32(a.code))
	case actHold:
		return "Hold"
	case actCall:
		return "Call"
	case actCutOff:
		return "CutAfterForward"
	}
	return "Nothing"
}

// wait does the part of an action that takes time, or as much of it as the
// connection lives for.
func (a Action) wait(done <-chan struct{}) {
	switch a.kind {
	case actDelay:
		t := time.NewTimer(a.delay)
		defer t.Stop()
		select {
		case <-t.C:
		case <-done:
		}
	case actHold:
		select {
		case <-a.until:
		case <-done:
		}
	case actCall:
		a.call()
	}
}

// matches tells whether path is what a fault names.
func (f *Fault) matches(path string) bool {
	if prefix, ok := strings.CutSuffix(f.Path, "*"); ok {
		return strings.HasPrefix(path, prefix)
	}
	return f.Path == path
}

func (f *Fault) matchesRequest(r *jute.Request) bool {
	if f.Path == "" || f.matches(r.Path) && r.Path != "" {
		return true
	}
	for i := range r.Subs {
		if f.matches(r.Subs[i].Path) {
			return true
		}
	}
	for _, paths := range r.Rearm {
		for _, path := range paths {
			if f.matches(path) {
				return true
			}
		}
	}
	return false
}
