package zksync

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-zksync/toolkit/session"
	engine "github.com/go-zksync/toolkit/zksync/internal/queue"
)

// A Message is a message that Messages or All has delivered. It belongs to the receiver
// alone, until the first call of Ack, Nack, Retry or MoveTo, or until the session is lost
// under which it was claimed. All methods may be called from any goroutine. See the
// package for the life of a message.
type Message struct {
	_ noCopy

	// Data is the receiver's to keep and to change.
	Data []byte

	// ID is the path of the message's znode. No other message of the queue has the same
	// ID as long as the directory in the path exists, and the ID stays the same when the
	// message is delivered again, except after Retry. The server deletes the empty
	// directory of a priority or of a due time, and a later message may have the ID again.
	ID string

	// Attempts is the number of deliveries of the message, this one included. A delivery
	// that Close has ended does not count if Close could give the message back within five
	// seconds (see Queue.Close). A consumer that dies may add one for a message
	// that it had claimed and not delivered. A consumer that gives a message back, or skips
	// it, may add one while the names of such messages exceed half of session.WithMaxRequest.
	Attempts int

	m       *session.Manager // nil if the message is in no queue
	settler settler
}

// A settler settles a message: a delivery, or the function of NewMessage.
type settler interface {
	Ack(ctx context.Context) error
	Nack(ctx context.Context) error
	Retry(ctx context.Context, delay time.Duration) error
	MoveTo(ctx context.Context, to engine.Target) error
	Lost() <-chan struct{}
}

func (q *queue) newMessage(d *engine.Delivery) *Message {
	// A copy: Retry and MoveTo write the data of d, and the receiver may change its own.
	return &Message{Data: bytes.Clone(d.Data), ID: d.ID, Attempts: d.Attempts, m: q.m, settler: d}
}

// notDelivered is the settler of a Message that neither a queue nor NewMessage has made.
var notDelivered = settleFunc(func(context.Context, string) error {
	return fmt.Errorf("%w: the Message is a zero value, want one of Messages, All or NewMessage", ErrInvalidOption)
})

func (m *Message) settledBy() settler {
	if m.settler == nil {
		return notDelivered
	}
	return m.settler
}

// Lost returns a channel that is closed when the session ends under which the message was claimed.
// Other consumers may have the message from then on, and Ack fails with ErrLost. It is nil for a
// message of NewMessage.
func (m *Message) Lost() <-chan struct{} { return m.settledBy().Lost() }

// Ack removes the message from the queue, and waits until that has happened. If ctx
// ends first, the removal goes on in the background, and Ack may be called again to
// learn the outcome.
//
// A lost connection only delays Ack, and so do servers that answer the question for the outcome with internal
// errors. The errors are:
//
//   - ErrLost if this consumer has lost its claim on the message: the session was lost,
//     the value of the queue was closed, or another client deleted its ledger (then also
//     ErrRemoved). The message comes again, unless Ack had removed it when the ledger was
//     deleted.
//   - ErrRemoved, which is an ErrLost, if another client has removed the message.
//   - ErrOutcomeUnknown, and ErrLost, if the session was lost, or the value was closed,
//     while the removal was under way, and no server answered in time. The message comes
//     again unless it was removed.
//   - ErrOutcomeUnknown alone if the consumer may not read its ledger any more, which would tell
//     the outcome. The message comes again unless it was removed.
//   - ErrSettled if Ack has returned nil before, or if Nack, Retry or MoveTo was called
//     first.
//
// With any other error, such as zk.ErrNoAuth where messages must not be removed, the
// message is given back, and the delivery counts as an attempt. A message with children
// fails with zk.ErrNotEmpty, and this value skips it from then on (see Skipped).
func (m *Message) Ack(ctx context.Context) error {
	return opError("ack", m.ID, m.settledBy().Ack(ctx))
}

// Nack gives the message back to its old position in the queue, ahead of all later
// messages except messages that consumers have claimed in advance (see WithPrefetch).
// The next consumer that claims gets the message, and that may be this consumer, at
// once: a message that is given back again and again keeps a consumer with
// WithPrefetch(1) from all other messages. For a message that you failed to handle, call
// Retry, which delivers the message after a delay. Nack waits, and fails, like Ack, but
// returns nil if another client has removed the message. If the names of all messages that
// consumers have given back exceed half of session.WithMaxRequest, later messages may come
// before it. If its request, which lists what this value has claimed, too, exceeds a small
// session.WithMaxRequest, Nack fails with session.ErrTooLarge, and this value gives the
// message back as soon as the request has room.
func (m *Message) Nack(ctx context.Context) error {
	return opError("nack", m.ID, m.settledBy().Nack(ctx))
}

// Retry delivers the message again after a delay, with another ID, ahead of the messages
// that wait. The message is never lost or doubled. The clock of this consumer sets the
// time, and the clock of the next consumer decides when it has come. A negative delay
// counts as zero. Beside more than 512 messages of Retry the message may come later, by 20
// microseconds for each of them. Other clients of the queue, such as Curator, do not see the
// message until then. Retry waits, and fails, like Ack. After two thousand million calls of Retry, it also fails
// with zk.ErrNodeExists, and gives the message back, if another message has its new name: then call
// Retry with another delay.
//
// The request of a Retry also lists what this value has claimed, and in a DelayQueue what
// all values have claimed. If a message is so near to the largest size that both do not fit
// into one request, Retry fails with session.ErrTooLarge and gives the message back.
func (m *Message) Retry(ctx context.Context, delay time.Duration) error {
	return opError("retry", m.ID, m.settledBy().Retry(ctx, delay))
}

// MoveTo moves the message to the end of another queue of the same Manager, for example
// a queue for dead letters. The message is never lost or doubled. If the other queue has a
// limit, MoveTo waits for room, and if the counter of its directory is spent, until its
// messages are consumed, as Put does. A message that moves to the end of its own queue has
// its room already, unless it has come from Retry. Otherwise MoveTo waits, and fails, like Ack; and it
// fails with session.ErrTooLarge, and gives the message back, like Retry. It also gives the
// message back if the other queue is nil or invalid, is the message itself or below it, has another Manager, is closed, also while
// MoveTo waits for room, or is the queue of the message and its counter is spent
// (zk.ErrNodeExists).
func (m *Message) MoveTo(ctx context.Context, to *Queue) error {
	t := engine.Target{Err: fmt.Errorf("%w: the queue is nil", ErrInvalidOption)}
	if to != nil {
		t = to.target()
	}
	if t.Err == nil && m.m != nil && m.m != to.m {
		t.Err = fmt.Errorf("%w: the queue %s has another Manager, want the Manager of the message", ErrInvalidOption, to.path)
	}
	if t.Err == nil && strings.HasPrefix(to.path+"/", m.ID+"/") {
		// The transaction deletes the message, and could not create another znode below it.
		t.Err = fmt.Errorf("%w: the path of the queue, %s, is the message itself or below it", ErrInvalidOption, to.path)
	}
	return opError("moveTo", m.ID, m.settledBy().MoveTo(ctx, t))
}

// target returns the queue as the target of MoveTo.
func (q *Queue) target() engine.Target {
	t := engine.Target{Err: q.checkUsable(), Dir: q.path, Prefix: q.kind.Prefix, NumberOf: q.numberOf, MakeDir: q.makeDir}
	if t.Err != nil {
		return t
	}
	t.Life = q.consumer.Life()
	if q.cfg.capacity > 0 {
		t.Gate, t.Turn = q.moves, q.movesTurn
	}
	return t
}

// NewMessage returns a Message that is in no queue, for tests of code that handles
// messages. The first of Ack, Nack, Retry and MoveTo calls settle, if it is not nil, with
// the name of the method, and returns its error. Further calls return ErrSettled. A MoveTo to a
// queue that cannot be used calls settle with Nack, because it gives the message back.
func NewMessage(id string, data []byte, settle func(ctx context.Context, verb string) error) *Message {
	if settle == nil {
		settle = func(context.Context, string) error { return nil }
	}
	var called atomic.Pointer[string]
	first := func(ctx context.Context, verb string) error {
		if !called.CompareAndSwap(nil, &verb) {
			return fmt.Errorf("%w: %s was called before", ErrSettled, *called.Load())
		}
		return settle(ctx, verb)
	}
	return &Message{Data: data, ID: id, Attempts: 1, settler: settleFunc(first)}
}

// A settleFunc is the settler of NewMessage. It is called with the name of the method.
type settleFunc func(ctx context.Context, verb string) error

func (f settleFunc) Ack(ctx context.Context) error                    { return f(ctx, "Ack") }
func (f settleFunc) Nack(ctx context.Context) error                   { return f(ctx, "Nack") }
func (f settleFunc) Retry(ctx context.Context, _ time.Duration) error { return f(ctx, "Retry") }
func (f settleFunc) Lost() <-chan struct{}                            { return nil }

func (f settleFunc) MoveTo(ctx context.Context, to engine.Target) error {
	if to.Err == nil {
		return f(ctx, "MoveTo")
	}
	if err := f(ctx, "Nack"); err != nil {
		return err
	}
	return to.Err
}
