package session

import (
	"fmt"
	"math/bits"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

const (
	// suspectSize is the size in bytes of the smallest request that can be above jute.maxbuffer:
	// see WithMaxRequest.
	suspectSize = 1024
	// suspectTimes is the number of connections that must end at the same request before the
	// request is named as the reason.
	suspectTimes = 3
	// suspectTime is the time after which a request that was not repeated is forgotten.
	suspectTime = 10 * time.Second
)

// hangUps finds the request that is above jute.maxbuffer of the servers, and not above
// WithMaxRequest. A server closes the connection at such a request without an answer, and
// a repetition breaks the next connection, for all callers.
type hangUps struct {
	m *shared

	mu    sync.Mutex
	op    int32
	path  string // with the chroot
	size  int
	times int       // the number of connections in a row that have ended at this request
	at    time.Time // of the newest of these ends
}

// done takes the outcome of a request.
func (h *hangUps) done(c *wire.Call) {
	size, path := len(c.Record), c.Path
	if len(c.Parts) > 0 {
		path = c.Parts[0].Path
	}
	if size < suspectSize || c.Err != nil && !c.Suspect {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	switch {
	case c.Err == nil && size < h.size:
		return
	case c.Err == nil:
		h.times = 0 // the servers accept such a request
		return
	case size != h.size || c.Op != h.op || path != h.path || now.Sub(h.at) > suspectTime:
		h.op, h.path, h.size, h.times = c.Op, path, size, 0
	}
	h.times, h.at = h.times+1, now
	// The first report, and then fewer and fewer.
	if h.times >= suspectTimes && bits.OnesCount(uint(h.times/suspectTimes)) == 1 && h.times%suspectTimes == 0 {
		h.m.cfg.log.Warn("servers hang up at a request", zap.String("operation", wire.OpName(h.op)), zap.String("path", h.m.strip(h.path)),
			zap.Int("bytes", h.size), zap.Int("times", h.times), zap.String("hint", hangUpHint))
	}
}

const hangUpHint = "the request may be above jute.maxbuffer of the servers: set session.WithMaxRequest to jute.maxbuffer"

// reason returns the reason why calls wait if a request breaks one connection after another,
// and otherwise nil.
func (h *hangUps) reason() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.times < suspectTimes || time.Since(h.at) > suspectTime {
		return nil
	}
	return fmt.Errorf("%d connections have ended at a %s of %d bytes; hint: %s", h.times, wire.OpName(h.op), h.size, hangUpHint)
}
