package zkserver

import (
	"crypto/md5" //nolint:gosec // the mechanism is defined by it
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"regexp"
	"strings"
)

// saslRealm is the host name that every ZooKeeper server uses in DIGEST-MD5.
const saslRealm = "zk-sasl-md5"

// saslExchange is the server's state of a DIGEST-MD5 exchange (RFC 2831).
type saslExchange struct {
	nonce string // nonce of the challenge; empty before the challenge was sent
	over  bool
}

// next consumes a token of the client and returns the next token of the server. It returns the user
// once the user is authenticated.
func (x *saslExchange) next(token []byte, users map[string]string) (answer []byte, user string, ok bool) {
	switch {
	case x.over:
		return nil, "", false
	case x.nonce == "" && len(token) > 0:
		return nil, "", false // the server must send the first token
	case x.nonce == "":
		x.nonce = rand.Text()
		return []byte(`realm="` + saslRealm + `",nonce="` + x.nonce + `",qop="auth",charset=utf-8,algorithm=md5-sess`), "", true
	}
	x.over = true
	given := saslDirectives(string(token))
	user, uri := given["username"], given["digest-uri"]
	password, known := users[user]
	switch {
	case !known, given["nonce"] != x.nonce, given["nc"] != "00000001", given["cnonce"] == "", given["realm"] != saslRealm:
		return nil, "", false
	case uri != "zookeeper/"+saslRealm, given["qop"] != "" && given["qop"] != "auth", given["authzid"] != "" && given["authzid"] != user:
		return nil, "", false
	}
	utf8 := strings.EqualFold(given["charset"], "utf-8")
	secret := md5.Sum([]byte(saslText(user, utf8) + ":" + saslRealm + ":" + saslText(password, utf8))) //nolint:gosec // as above
	start := string(secret[:]) + ":" + x.nonce + ":" + given["cnonce"]
	if id := given["authzid"]; id != "" {
		start += ":" + id
	}
	prove := func(method string) string {
		return md5Hex(strings.Join([]string{md5Hex(start), x.nonce, given["nc"], given["cnonce"], "auth", md5Hex(method + ":" + uri)}, ":"))
	}
	if subtle.ConstantTimeCompare([]byte(prove("AUTHENTICATE")), []byte(given["response"])) != 1 {
		return nil, "", false
	}
	return []byte("rspauth=" + prove("")), user, true
}

func md5Hex(s string) string {
	sum := md5.Sum([]byte(s)) //nolint:gosec // as above
	return hex.EncodeToString(sum[:])
}

// saslText encodes a text for hashing: in ISO 8859-1 if possible.
func saslText(s string, utf8 bool) string {
	if !utf8 {
		return s // the client sent it in the encoding that is hashed
	}
	var latin []byte
	for _, r := range s {
		if r > 0xff {
			return s
		}
		latin = append(latin, byte(r))
	}
	return string(latin)
}

var saslDirective = regexp.MustCompile(`([a-z-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^",]*))`)

var saslEscape = regexp.MustCompile(`\\(.)`)

// saslDirectives parses a list such as `username="x",qop=auth`.
func saslDirectives(s string) map[string]string {
	directives := make(map[string]string)
	for _, m := range saslDirective.FindAllStringSubmatch(s, -1) {
		directives[m[1]] = saslEscape.ReplaceAllString(m[2], "$1") + strings.TrimSpace(m[3])
	}
	return directives
}
