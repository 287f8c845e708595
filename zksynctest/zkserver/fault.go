package zkserver

import (
	"fmt"
	"strings"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/jute"
)

// Fault describes a failure and the requests or events that it strikes. A request must match all of
// Session, Endpoint, Op, Path and Match. The zero Fault with an action strikes the next request.
type Fault struct {
	Session  int64  // 0 matches any session. For a connect: the requested or the granted session.
	Endpoint int    // 0 matches any endpoint
	Op       OpCode // 0 matches any operation; ignored OnWatch
	// Path matches an equal path; with a '*' at its end it matches all paths with the prefix before
	// the '*'. "" matches any path. A multi matches if one of its operations matches, setWatches if
	// one of its paths matches, and a sequential create by the requested name.
	Path string
	// Match, if it is not nil, must also return true. Match sees the request as [Server.Ops] shows
	// it, with its result AfterCommit and BeforeReply. OnWatch it sees the event as an
	// [OpWatchEvent]. Match may be called several times for one request and must return the same
	// result each time. The server waits for Match, so Match must not call the server. Match runs in
	// a goroutine of its own; if it ends the goroutine, by FailNow of a test, it counts as false.
	Match func(Op) bool
	// Nth is the number of the first match that the fault strikes; 0 and 1 mean the first match.
	Nth int
	// Times is the number of matches that the fault strikes: 0 means one, and -1 means all.
	Times int
	At    Moment
	Do    Action
}

// String describes the fault in one line.
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

// Moment is the stage of a request, or of a watch event, at which a [Fault] strikes.
type Moment int

// The moments of a request. Failed requests and reads have the same moments as successful writes.
const (
	// BeforeCommit is the moment after the server has read the request and before any effect,
	// including the touch of the session.
	BeforeCommit Moment = iota
	// AfterCommit is the moment after the request was carried out and its watch events were queued.
	AfterCommit
	// BeforeReply is the moment before the reply is sent, after the effects of AfterCommit.
	BeforeReply
	// OnWatch is the moment before a watch event for Path is sent to Session, after all earlier
	// frames of that connection.
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

// Action is the effect of a [Fault]. The zero Action does nothing; a Fault with the zero Action
// counts matches.
type Action struct {
	kind  actionKind
	delay time.Duration
	code  Code
	until <-chan struct{}
	call  func()
	// throttles marks the error of a throttled request.
	throttles bool
}

// Drop drops the request (BeforeCommit), its reply (AfterCommit and BeforeReply) or the event
// (OnWatch). The connection stays open.
var Drop = Action{kind: actDrop}

// Disconnect closes the connection at the moment of the fault. Frames that were sent earlier still
// arrive.
var Disconnect = Action{kind: actDisconnect}

// CutAfterForward cuts the endpoint off from its leader directly after the endpoint has forwarded
// the request. The leader carries out the request; neither the answer nor the change reaches this
// endpoint. If the endpoint leads, the other endpoints have its proposal, and the next leader
// commits it. A request that needs no leader, or that the endpoint refuses without its leader, is
// answered. The endpoint is cut off as by [Endpoint.CutFromLeader], until [Endpoint.Rejoin]. On a
// standalone server only the connection is cut off, as by [Server.CutFromLeader]. CutAfterForward
// strikes BeforeCommit only.
var CutAfterForward = Action{kind: actCutOff}

// Throttle answers [ErrThrottledOp], like a server with throttled_op_wait_time whose requests have
// waited for too long. The request is not carried out, and touches its session like any other
// request. Pings, closeSession and new connections are never throttled, and do not match. Throttle
// strikes BeforeCommit only.
var Throttle = Action{kind: actError, code: ErrThrottledOp, throttles: true}

// Delay stops the connection for d of the server's time. Later requests and replies of the
// connection wait behind a delayed request or reply. Behind a delayed event later replies wait, but
// the server carries out later requests meanwhile. Its events wait behind a delayed reply or event,
// and not behind a request that is delayed BeforeCommit: a real server sends them, too, while a
// request waits for its leader. The frames that wait are lost if the connection ends meanwhile. Other
// connections continue. A delayed ConnectRequest does not extend the time that the server gives a
// connection without a session, 10 to 20 s.
func Delay(d time.Duration) Action { return Action{kind: actDelay, delay: d} }

// Error answers with code. BeforeCommit the request is not carried out; at the later moments it has
// been carried out. A connect is refused as if its session had expired, for any code.
// [ErrSessionMoved] closes the connection without an answer, like a server whose session has moved
// to another server. A watch event has no answer, and code 0 is no error: Inject panics for an Error
// OnWatch and for Error(0).
//
// No server sends [ErrRequestTimeout]: only the Java client creates this error. A server that does
// not serve sends no answers: it closes connections at their ConnectRequest, like [Disconnect] for
// [OpConnect].
func Error(code Code) Action { return Action{kind: actError, code: code} }

// Hold stops the connection like Delay, until the channel is closed.
func Hold(until <-chan struct{}) Action { return Action{kind: actHold, until: until} }

// Call runs f and continues when f returns; the connection waits as for Delay. f may call all
// methods of the server except Close.
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

// wait runs the part of an action that takes time. It returns false if the connection ended before
// the action did. An action that does not wait runs on a connection that has ended, too, because the
// frames that were queued before the end still arrive.
func (a Action) wait(done <-chan struct{}) bool {
	switch a.kind {
	case actDelay:
		t := time.NewTimer(a.delay)
		defer t.Stop()
		select {
		case <-t.C:
		case <-done:
			return false
		}
	case actHold:
		select {
		case <-a.until:
			return true
		default:
		}
		select {
		case <-a.until:
		case <-done:
			return false
		}
	case actCall:
		a.call()
	}
	return true
}

// matches reports whether the fault's Path matches path.
func (f *Fault) matches(path string) bool {
	if prefix, ok := strings.CutSuffix(f.Path, "*"); ok {
		return strings.HasPrefix(path, prefix)
	}
	return f.Path == path
}

// accepts calls Match in a goroutine of its own. The caller holds the server's mu, which a panic or a
// runtime.Goexit of Match would leave locked, and the deferred calls of the connection lock mu.
func (f *Fault) accepts(op Op) (ok bool) {
	done := make(chan struct{})
	go func() {
		defer close(done) // also when Match calls runtime.Goexit
		ok = f.Match(op)
	}()
	<-done
	return ok
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
