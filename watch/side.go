package watch

import (
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
)

// A side is one of the two things of a znode that are read and watched
// independently of each other: its data, or the list of its children.
type side struct {
	kind sideKind
	// awaited: while the znode does not exist, the side watches for its creation.
	// A side that is not awaited leaves that to the list of the parent.
	awaited bool

	state   sideState
	looking bool // the request looks for the znode, and reads nothing
	read    *session.InboxRead
	refusal error // the server's answer, until another answer shows the side
	misses  int   // the reads in a row that found no znode, although something else has shown one
}

type sideKind uint8

const (
	dataSide sideKind = iota
	listSide
)

// sideState says whether the present state of a side is known.
type sideState uint8

const (
	// unasked: nothing is known, and no request is on its way. Only the list of a root
	// that does not exist is unasked.
	unasked sideState = iota
	// asked: a request is on its way. Its answer covers everything that is delivered
	// before the answer, so nothing else changes the side.
	asked
	// armed: the last answer shows the present state, and a watch reports the next
	// change.
	armed
	// refused: the server refuses for good to show the side. Only a look for the znode may have
	// left a watch.
	refused
)

// A sideInput is an event that changes the state of a side.
type sideInput uint8

const (
	need     sideInput = iota // something has changed nearby: the side must be known
	answer                    // the request was answered, with a watch
	refusal                   // the request was refused
	change                    // the watch fired, or can no longer be trusted
	vanished                  // the znode is gone, and something else watches for its creation
)

// sideTransitions has the next state of a side for each state and input. A request is
// sent if and only if a side becomes asked.
var sideTransitions = [...][5]sideState{
	//        need   answer   refusal  change   vanished
	unasked: {asked, unasked, unasked, unasked, unasked},
	asked:   {asked, armed, refused, asked, unasked},
	armed:   {armed, armed, armed, asked, unasked},
	refused: {asked, refused, refused, asked, unasked},
}

// input applies the table, and reports whether the side has become asked. tag is
// the tag of the request.
func (sd *side) input(x sideInput, in *session.Inbox, path string, tag any) (becameAsked bool) {
	next := sideTransitions[sd.state][x]
	// A side that is asked already needs no other request: the answer on its way covers
	// this input.
	becameAsked = next == asked && sd.state != asked
	sd.state = next
	switch {
	case becameAsked:
		// Data that were too large would break connections again, of all callers. A look tells
		// whether they have become smaller.
		sd.send(in, path, tag, sd.kind == dataSide && session.IsAnswerTooLarge(sd.refusal))
	// The znode is gone from the mirror, so nothing else would give the watch back.
	case next == unasked:
		sd.refusal = nil
		sd.stop()
	case x == answer:
		sd.refusal, sd.misses = nil, 0
	}
	return becameAsked
}

// send replaces the side's request, or its watch, by a new request.
func (sd *side) send(in *session.Inbox, path string, tag any, looking bool) {
	// deliver accepts the deliveries of one read only.
	sd.stop()
	sd.looking = looking
	switch {
	case looking:
		sd.read = in.Exists(path, tag)
	case sd.kind == dataSide:
		sd.read = in.Data(path, tag)
	default:
		sd.read = in.Children(path, tag)
	}
	if !looking {
		// A server whose answers contradict each other would be asked without end.
		sd.read.Delay(sd.misses)
	}
}

// stop gives up the side's request, or its watch.
func (sd *side) stop() {
	if sd.read != nil {
		sd.read.Stop()
		sd.read = nil
	}
}

// A finding is the meaning of a delivery for a side.
type finding uint8

const (
	nothing finding = iota // the delivery is stale, or another request must be answered first
	changed                // the side has become asked
	present                // the side is armed; the delivery has the answer
	absent                 // the znode does not exist; the side is armed if it is awaited
	denied                 // the side is refused
)

// deliver takes an answer or an event of the side.
func (sd *side) deliver(d *session.Delivery, in *session.Inbox, path string) finding {
	switch {
	// Stop does not take back a delivery that had arrived before.
	case d.Read != sd.read:
		return nothing // of a request or a watch that was given up
	// A look would cost a request: if the znode is created again, the list of its parent
	// reports the new znode.
	case d.Kind == session.InboxEvent && d.Event == zk.EventNodeDeleted && !sd.awaited:
		return absent
	// The event names no state, and the znode may have changed again since.
	case d.Kind == session.InboxEvent:
		sd.input(change, in, path, d.Tag)
		return changed
	case errors.Is(d.Err, zk.ErrNoNode) && !sd.awaited:
		sd.misses++
		return absent
	// getData and getChildren leave no watch on a znode that does not exist. exists does.
	case errors.Is(d.Err, zk.ErrNoNode) && !sd.looking:
		sd.misses++
		sd.refusal = nil // of an earlier znode: the look may find another one, which must be read
		sd.send(in, path, d.Tag, true)
		return nothing
	case errors.Is(d.Err, zk.ErrNoNode):
		sd.input(answer, in, path, d.Tag)
		return absent
	// The Inbox repeats a read that was refused for a while, so this refusal is final. A look leaves
	// a watch for a change after which the data may be readable, for example because they are smaller.
	case d.Err != nil && sd.kind == dataSide && !sd.awaited && !sd.looking:
		sd.refusal = d.Err
		sd.send(in, path, d.Tag, true)
		return nothing
	case d.Err != nil:
		sd.refusal = d.Err
		sd.input(refusal, in, path, d.Tag)
		return denied
	case sd.looking && sd.refusal != nil && !(session.IsAnswerTooLarge(sd.refusal) && d.Fits()):
		sd.input(refusal, in, path, d.Tag)
		return denied
	case sd.looking: // the znode was created, or its data have changed, since the answer before the look
		sd.send(in, path, d.Tag, false)
		return nothing
	}
	sd.input(answer, in, path, d.Tag)
	return present
}
