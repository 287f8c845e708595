package session

import (
	"iter"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// A DeliveryKind is the kind of a Delivery.
type DeliveryKind uint8

const (
	// InboxAnswer is the answer to Read. Err is set, or Data or Names decode the result.
	InboxAnswer DeliveryKind = iota + 1
	// InboxEvent is the event of the watch of Read. Event is the type of the event.
	InboxEvent
	// InboxPost is a delivery of Post.
	InboxPost
	// InboxConnection reports that another connection came into use. Armed watches stay
	// armed.
	InboxConnection
)

// A Delivery is one answer, event, post or change of connection that has arrived in an
// Inbox.
type Delivery struct {
	Kind  DeliveryKind
	Tag   any        // the tag of the read, or of Post
	Read  *InboxRead // of InboxAnswer and InboxEvent
	Event zk.EventType
	Err   error // of InboxAnswer: zk.ErrNoNode, or a final refusal

	body []byte
}

// Data decodes the answer to Inbox.Data. The data share the memory of the answer.
func (d *Delivery) Data() ([]byte, *zk.Stat, error) {
	dec := wire.Decoder{B: d.body}
	data, stat := dec.Buffer(), dec.Stat()
	return data, stat, d.decoded(&dec)
}

// Names decodes the answer to Inbox.Children. The names come in the server's order and
// share one string: use strings.Clone to keep a name.
func (d *Delivery) Names() (iter.Seq[string], *zk.Stat, error) {
	dec := wire.Decoder{B: d.body}
	names, stat := dec.List(), dec.Stat()
	return names, stat, d.decoded(&dec)
}

func (d *Delivery) decoded(dec *wire.Decoder) error {
	if dec.Bad {
		return d.Read.failure(wire.ErrMalformed)
	}
	return nil
}
