package zksync

import "context"

// NewMessage returns a Message that is in no queue, for tests of code that handles
// messages. The first Ack or Nack calls settle with "Ack" or "Nack", and returns its
// error. A nil settle stands for a function that returns nil. Further calls return
// ErrSettled, as for the messages of a queue.
func NewMessage(id string, data []byte, settle func(ctx context.Context, verb string) error) *Message {
	if settle == nil {
		settle = func(context.Context, string) error { return nil }
	}
	return &Message{Data: data, ID: id, settler: settle, outcome: make(chan struct{})}
}
