package zksync

import (
	"context"
	"iter"

	"github.com/go-zksync/toolkit/session"
)

// All returns a loop over the messages of Messages:
//
//	for msg, err := range q.All(ctx) {
//		if err != nil {
//			return err
//		}
//		...
//	}
//
// The loop ends with an error and no message when ctx ends, and when the channel of
// Messages is closed: then the error is the one of Err. A loop that is left by break or
// return, or by the end of ctx, can be begun again, and leaves the value open: close it to
// give back the messages that were not received. Each message must be settled, see
// WithPrefetch.
func (q *queue) All(ctx context.Context) iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		messages := q.Messages()
		for {
			if ctx.Err() != nil {
				yield(nil, q.opError("consume", session.Cancelled(ctx)))
				return
			}
			select {
			case msg, ok := <-messages:
				if !ok {
					yield(nil, q.Err())
					return
				}
				if !yield(msg, nil) {
					return
				}
			case <-ctx.Done():
			}
		}
	}
}
