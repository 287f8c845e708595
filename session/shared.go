package session

import (
	"context"
	"sync"
	"sync/atomic"
)

// shared is what a Manager has in common with its Sessions.
type shared struct {
	cfg     config
	records records
	servers *servers
	jitter  jitter
	firstID sync.Once
	clock   clock

	ctx    context.Context // ends when Close begins, with ErrClosed as its cause
	cancel context.CancelCauseFunc

	connections   atomic.Uint64
	requests      atomic.Uint64 // that are over
	removeWatches feature
	containers    feature
	multiReads    feature
	holds         atomic.Bool // a session has ever held something or waited to

	everConnected atomic.Bool
	hopeless      chan struct{} // closed when Connect should not wait any longer
	hopelessOnce  sync.Once
	hopelessErr   error // why; valid once hopeless is closed

	waits     waits
	lines     lineLimit // of connections and new sessions
	lostLines lineLimit // of lost sessions, which the lines of an outage must not hide
	zkLines   lineLimit // of go-zookeeper

	// manager is the Manager, as far as a Session knows it.
	manager interface {
		State() State
		offline() error // why a call has to wait for a connection
	}
}

// full is a path as the server knows it, and strip is the inverse.
func (m *shared) full(path string) string  { return m.records.chroot.full(path) }
func (m *shared) strip(path string) string { return m.records.chroot.strip(path) }
