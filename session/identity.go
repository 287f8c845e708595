package session

import (
	"sync/atomic"
	"time"
)

// An identity is the name of a session on the servers.
type identity struct {
	id     int64
	passwd []byte
	opened time.Time   // when the server gave the id
	known  atomic.Bool // the three above are set
	useful atomic.Bool // a request of a caller was carried out
}
