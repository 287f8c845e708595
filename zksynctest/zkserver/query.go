package zkserver

import (
	"strings"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/jute"
)

// getEphemerals lists the session's ephemerals whose paths begin with a prefix. The prefix is a
// string prefix, not a parent path.
func (c *conn) getEphemerals(r *jute.Request) {
	prefix := r.Path
	blank := func(r rune) bool { return r <= ' ' } // like Java's trim
	if trimmed := strings.TrimFunc(prefix, blank); trimmed == "" || trimmed == "/" {
		prefix = ""
	}
	start, number := len(c.reply), int32(0)
	c.reply = jute.AppendInt32(c.reply, 0)
	for _, path := range c.treeOf().EphemeralsOf(c.sess.id) {
		if strings.HasPrefix(path, prefix) {
			c.reply = jute.AppendString(c.reply, path)
			number++
		}
	}
	jute.AppendInt32(c.reply[:start], number)
}

// whoAmI lists the identities of c without their secrets.
func (c *conn) whoAmI() {
	c.reply = jute.AppendInt32(c.reply, int32(len(c.client.IDs)))
	for _, who := range c.client.IDs {
		user := who.ID
		if who.Scheme == "digest" {
			user, _, _ = strings.Cut(user, ":")
		}
		c.reply = jute.AppendString(jute.AppendString(c.reply, who.Scheme), user)
	}
}
