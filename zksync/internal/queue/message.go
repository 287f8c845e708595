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
	return !m.anyOrder && !m.mayRepeat()
}

// mayRepeat reports whether a later message of the directory may have the same name. When the
// counter of a directory is spent, each further request that creates messages begins with the
// last number again, and the numbers of later messages in the request wrap.
func (m message) mayRepeat() bool { return m.Seq == math.MaxInt32 || m.Seq < 0 }
