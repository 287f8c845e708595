package zkserver

import (
	"crypto/sha1" //nolint:gosec // the protocol's digest scheme is defined by it
	"encoding/base64"
	"slices"
	"strings"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/jute"
	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/tree"
)

// authenticate adds an identity to the connection. It is no part of the pipeline
// that stamps replies with a zxid.
func (s *Server) authenticate(c *conn, r *jute.Request) result {
	if r.Bad {
		return result{silent: true, hangUp: true}
	}
	switch {
	case r.Scheme == "digest" && r.Auth != nil:
		id := digest(r.Auth)
		if s.cfg.SuperDigest != "" && id == s.cfg.SuperDigest {
			c.identify(tree.Identity{Scheme: "super", ID: ""})
		}
		c.identify(tree.Identity{Scheme: "digest", ID: id})
	case r.Scheme == "ip":
		c.identify(tree.Identity{Scheme: "ip", ID: c.ip})
	default:
		return result{code: ErrAuthFailed, hangUp: true}
	}
	return result{}
}

func (c *conn) identify(who tree.Identity) {
	if !slices.Contains(c.client.IDs, who) {
		c.client.IDs = append(c.client.IDs, who)
	}
}

// digest is the identity that "user:password" proves.
func digest(auth []byte) string {
	text := string([]rune(string(auth))) // Java reads what is no UTF-8 as U+FFFD
	user, _, _ := strings.Cut(text, ":")
	sum := sha1.Sum([]byte(text)) //nolint:gosec // as above
	return jute.JavaString([]byte(user)) + ":" + base64.StdEncoding.EncodeToString(sum[:])
}
