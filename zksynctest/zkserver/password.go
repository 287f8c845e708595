package zkserver

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
)

// newPassword is what a client must have to go on with a session. A real server derives
// it from the id of the session, which anybody can read, so that anybody can take the
// session over; clients only keep it and give it back.
func newPassword() (p [16]byte) {
	_, _ = rand.Read(p[:]) // which never fails
	return p
}

// localPassword is that of a session of an endpoint that only reads. Nothing is kept
// of such a session when its connection has ended, and its client may come back.
func localPassword(secret [16]byte, id int64) (p [16]byte) {
	mac := hmac.New(sha256.New, secret[:])
	mac.Write(binary.BigEndian.AppendUint64(nil, uint64(id)))
	copy(p[:], mac.Sum(nil))
	return p
}
