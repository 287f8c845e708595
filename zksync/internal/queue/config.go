package queue

import (
	"context"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/queue/commit"
)

// maxErrors is the number of internal errors of servers in a row after which a consumer gives up:
// messages cannot be received at all, or not given back at Close.
const maxErrors = 8

// A Config describes the queue of a Consumer.
type Config struct {
	Manager  *session.Manager
	Path     string
	Kind     Kind
	Prefetch int // the most messages that are claimed and not settled
	// Removals carries out the transactions of Take. It is closed after the Consumer.
	Removals *commit.Committer
	// MakeDir creates a directory of the queue, and the directories above it.
	MakeDir func(ctx context.Context, s *session.Session, path string) error

	maxOrderVersion int32 // see the constant
}

// child returns the path of a znode in the queue's directory, or beside the directory
// in a layout in which every child of the directory is a message.
func (c *Config) child(name string) string { return c.Kind.Child(c.Path, name) }

// dirOf returns the path of the directory of messages with a name in the queue's directory; the
// empty name stands for the queue's directory itself.
func (c *Config) dirOf(name string) string {
	if name == "" {
		return c.Path
	}
	return c.child(name)
}

// observeDelivery tells the observer of the Manager that a message was received.
func (c *Config) observeDelivery(data []byte) {
	if delivered := c.Manager.Observer().Delivered; delivered != nil {
		delivered(session.Delivered{Path: c.Path, Size: len(data)})
	}
}

// observeLength tells the observer of the Manager how long the queue is, as a listing has
// shown that was made anyway.
func (c *Config) observeLength(n int) {
	if length := c.Manager.Observer().QueueLength; length != nil {
		length(session.QueueLength{Path: c.Path, Length: n})
	}
}
