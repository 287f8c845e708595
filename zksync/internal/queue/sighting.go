package queue

// A sighting says when a message was last seen in its directory. Another client may delete the
// directory and create it again, so that the name of the message is the name of another one. A
// ledger outside of the directory survives that, and its version does not protect the new message.
type sighting struct {
	needed    bool // the ledger is outside of the directory
	partition *partition
	conn      uint64 // the connection; 0 if there was none
	late      bool   // the message was looked at after its directory was known to be deleted, or without a watch
}

// holds reports whether the message may be removed on a connection without another look. A watch
// reports the deletion of the directory as long as a connection lasts.
func (s sighting) holds(conn uint64) bool {
	return !s.needed || conn != 0 && conn == s.conn && (s.late || !s.partition.mayBeRecreated())
}
