package zkserver

import (
	"crypto/sha1" //nolint:gosec // the protocol's digest scheme is defined by it
	"encoding/base64"
	"slices"
	"strings"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/jute"
	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/tree"
)

// authenticate adds an identity to the connection. Its reply bypasses the pipeline that stamps
// replies with a zxid.
func (c *conn) authenticate(r *jute.Request) result {
	s := c.s
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

// digest returns the identity that "user:password" proves.
func digest(auth []byte) string {
	text := string([]rune(string(auth))) // Java decodes bytes that are not UTF-8 as U+FFFD
	user, _, _ := strings.Cut(text, ":")
	sum := sha1.Sum([]byte(text)) //nolint:gosec // as above
	return jute.JavaString([]byte(user)) + ":" + base64.StdEncoding.EncodeToString(sum[:])
}

// authenticateSASL answers a SASL token of the client. Its reply bypasses the pipeline that stamps
// replies with a zxid, like the reply to auth.
func (c *conn) authenticateSASL(r *jute.Request) result {
	s := c.s
	if s.cfg.SASLUsers == nil {
		c.reply = jute.AppendBuffer(c.reply, nil)
		return result{}
	}
	answer, user, ok := c.sasl.next(r.Auth, s.cfg.SASLUsers)
	if !ok {
		c.reply = jute.AppendBuffer(c.reply, nil)
		code := ErrAuthFailed
		if s.cfg.RequireSASL {
			code = ErrSASLRequired
		}
		return result{code: code, whole: true, hangUp: true}
	}
	if user != "" {
		c.identify(tree.Identity{Scheme: "sasl", ID: user})
	}
	c.reply = jute.AppendBuffer(c.reply, answer)
	return result{}
}

func (c *conn) hasScheme(scheme string) bool {
	return slices.ContainsFunc(c.client.IDs, func(who tree.Identity) bool { return who.Scheme == scheme })
}
