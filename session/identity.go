package session

import (
	"fmt"
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
