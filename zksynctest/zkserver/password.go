package zkserver

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
)

// newPassword returns a random session password, which a client must present to resume the session.
// A real server derives the password from the session id, which every client can read, so that any
// client can take over any session; clients treat the password as opaque.
func newPassword() (p [16]byte) {
	_, _ = rand.Read(p[:]) // Read never returns an error
	return p
}

// localPassword returns the password of a local session on a read-only endpoint. The endpoint keeps
// no state of such a session after its connection has ended, so it derives the password to
// recognize a client that reconnects.
func localPassword(secret [16]byte, id int64) (p [16]byte) {
	mac := hmac.New(sha256.New, secret[:])
	mac.Write(binary.BigEndian.AppendUint64(nil, uint64(id)))
	copy(p[:], mac.Sum(nil))
	return p
}
