package zksync

import "github.com/go-zksync/toolkit/session"

// observeDelivery tells the observer of the Manager that a consumer has received a
// message.
func (q *queue) observeDelivery(data []byte) {
	if delivered := q.m.Observer().Delivered; delivered != nil {
		delivered(session.Delivered{Path: q.path, Size: len(data)})
	}
}

// observeLength tells the observer of the Manager how long the queue is, as a listing
// has shown that was made anyway.
func (q *queue) observeLength(n int) {
	if length := q.m.Observer().QueueLength; length != nil {
		length(session.QueueLength{Path: q.path, Length: n})
	}
}
