package znode

// IsSession reports whether the owner of a znode is a session. The server marks
// containers and znodes with a time to live by owners that are no sessions.
func IsSession(owner int64) bool {
	return owner != 0 && uint64(owner) != 1<<63 && uint64(owner)>>56 != 0xff
}
