package session

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// shared is the part of a Manager that its Sessions use.
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
	requests      atomic.Uint64 // number of finished requests
	removeWatches feature
	containers    feature
	multiReads    feature
	holds         atomic.Bool // a session has ever held or waited for something

	everConnected atomic.Bool
	hopeless      context.Context // ends when Connect should stop waiting, with the reason as its cause
	endConnect    context.CancelCauseFunc

	// Methods of the Manager; see Manager.outage and Manager.offline.
	outage, offline func() error

	hangUps   hangUps
	waits     waits
	lines     lineLimit // of connections and new sessions
	lostLines lineLimit // of lost sessions, which the lines of an outage must not suppress
	mistakes  lineLimit // of mistakes of configuration, which the lines of connections must not suppress
}

// full returns the path with the chroot, and strip is the inverse.
func (m *shared) full(path string) string  { return m.records.chroot.full(path) }
func (m *shared) strip(path string) string { return m.records.chroot.strip(path) }

// failure returns err, with which a call ended before its answer, or else the error of a
// refused call. If an ACL is the reason, the error explains the refusal.
func (m *shared) failure(c *wire.Call, err error) error {
	if err != nil {
		return err
	}
	if err = failureOf(c); err != nil && !c.Own {
		err = m.cfg.denied(err, c.Op, c.Path)
	}
	return err
}
