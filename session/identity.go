package session

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// An identity is the name of a session on the servers.
type identity struct {
	id     int64
	passwd []byte
	opened time.Time   // when the server created the session
	known  atomic.Bool // the three fields above are set
	useful atomic.Bool // a request of a caller was carried out
}

// sessionID formats a session id as ZooKeeper's logs do.
func sessionID(id int64) string { return fmt.Sprintf("0x%x", uint64(id)) }

func sessionField(id int64) zap.Field { return zap.String("session", sessionID(id)) }

// maxFormer is the number of lost sessions that are remembered. No more sessions than
// this can have znodes left.
const maxFormer = 64

// formerSessions holds the ids of the sessions that a Manager has lost.
type formerSessions struct {
	mu  sync.Mutex
	ids []int64
}

// remember records a session that was lost.
func (f *formerSessions) remember(id int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ids = append(f.ids, id)
	f.ids = f.ids[max(0, len(f.ids)-maxFormer):]
}

func (f *formerSessions) has(id int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Contains(f.ids, id)
}
