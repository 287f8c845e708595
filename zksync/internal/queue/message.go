package queue

import "math"

// A message identifies a message of a directory.
type message struct {
	czxid    int64 // of the directory
	anyOrder bool  // see Kind
	Item
}

func (m message) key() claimKey { return claimKey{m.czxid, m.Name} }

// byCursor reports whether the cursor of the directory tells if the message is claimed.
func (m message) byCursor() bool {
	// When the counter of a directory is spent, all further messages have its last number,
	// one at a time.
	return !m.anyOrder && m.Seq != math.MaxInt32
}
