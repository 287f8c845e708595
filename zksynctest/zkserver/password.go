package zkserver

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
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
func (s *Server) localPassword(id int64) (p [16]byte) {
	mac := hmac.New(sha256.New, s.secret[:])
	mac.Write(binary.BigEndian.AppendUint64(nil, uint64(id)))
	copy(p[:], mac.Sum(nil))
	return p
}

func (sess *session) admits(password []byte) bool {
	return subtle.ConstantTimeCompare(password, sess.password[:]) == 1
}

// passwordOf is what java.util.Random gives a real server for the session, and what
// this server gave to the sessions in a data file of the first version.
func passwordOf(id int64) (p [16]byte) {
	const (
		secret     = 0xB3415C00
		multiplier = 0x5DEECE66D
		mask       = 1<<48 - 1
	)
	state := (uint64(id) ^ secret ^ multiplier) & mask
	for i := 0; i < len(p); i += 4 {
		state = (state*multiplier + 0xB) & mask
		v := uint32(state >> 16)
		p[i], p[i+1], p[i+2], p[i+3] = byte(v), byte(v>>8), byte(v>>16), byte(v>>24)
	}
	return p
}
