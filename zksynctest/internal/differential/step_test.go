package differential

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// step is one line of a sequence.
type step struct {
	line   string
	client int
	request
}

// request is the request of a line, or an operation of a multi.
type request struct {
	op   string
	path string
	args map[string]string
	subs []request
}

// clients is the number of clients of a sequence.
const clients = 3

// opCodes maps the names of requests in lines to their types.
var opCodes = map[string]int32{
	"create": 1, "delete": 2, "exists": 3, "getData": 4, "setData": 5, "getACL": 6, "setACL": 7,
	"getChildren": 8, "sync": 9, "ping": 11, "getChildren2": 12, "check": 13, "multi": 14, "create2": 15,
	"reconfig": 16, "checkWatches": 17, "removeWatches": 18, "createContainer": 19, "deleteContainer": 20,
	"createTTL": 21, "multiRead": 22, "auth": 100, "setWatches": 101, "sasl": 102, "getEphemerals": 103,
	"getAllChildrenNumber": 104, "setWatches2": 105, "addWatch": 106, "whoAmI": 107, "closeSession": -11,
	"op": 0, // with code=
}

// The actions of a line that are not requests.
const (
	doConnect = "connect" // a new session over a new connection
	doResume  = "resume"  // session s=, over a new connection
	doDrop    = "drop"    // closes the connection
	doBytes   = "bytes"   // sends the bytes of hex= unchanged
)

// argNames are the names of the arguments of lines; a missing argument has a default.
var argNames = []string{
	"data", "acl", "flags", "ttl", "version", "watch", "type", "mode", "scheme", "auth", "zxid", "exist", "child",
	"persistent", "recursive", "code", "hex", "cut", "timeout", "s", "password", "readonly", "xid",
}

var numberNames = []string{"flags", "ttl", "version", "type", "mode", "code", "cut", "timeout", "s", "xid"}

// tokens splits a line at spaces and around brackets and semicolons; text in double quotes follows
// Go's syntax.
func tokens(line string) (list []string, err error) {
	for line != "" {
		if line[0] == ' ' {
			line = line[1:]
			continue
		}
		if strings.IndexByte("[];", line[0]) >= 0 {
			list, line = append(list, line[:1]), line[1:]
			continue
		}
		var word strings.Builder
		for line != "" && strings.IndexByte(" [];", line[0]) < 0 {
			if line[0] != '"' {
				word.WriteByte(line[0])
				line = line[1:]
				continue
			}
			quoted, err := strconv.QuotedPrefix(line)
			if err != nil {
				return nil, fmt.Errorf("%w: %s", err, line)
			}
			text, err := strconv.Unquote(quoted)
			if err != nil {
				return nil, fmt.Errorf("%w: %s", err, line)
			}
			word.WriteString(text)
			line = line[len(quoted):]
		}
		list = append(list, word.String())
	}
	return list, nil
}

func parseStep(line string) (step, error) {
	words, err := tokens(line)
	if err != nil {
		return step{}, err
	}
	if len(words) < 2 {
		return step{}, fmt.Errorf("%q: want a client and an operation", line)
	}
	client, err := strconv.Atoi(words[0])
	if err != nil || client < 0 || client >= clients {
		return step{}, fmt.Errorf("%q: want a client from 0 to %d", line, clients-1)
	}
	r, rest, err := parseRequest(words[1:])
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("unexpected %q", rest)
	}
	if err != nil {
		return step{}, fmt.Errorf("%q: %w", line, err)
	}
	return step{line, client, r}, nil
}

func parseRequest(words []string) (r request, rest []string, err error) {
	r = request{op: words[0], args: map[string]string{}}
	if _, ok := opCodes[r.op]; !ok && !slices.Contains([]string{doConnect, doResume, doDrop, doBytes}, r.op) {
		return r, nil, fmt.Errorf("unknown operation %q", r.op)
	}
	hasPath := false
	for words = words[1:]; len(words) > 0; words = words[1:] {
		word := words[0]
		if word == "[" {
			if words, err = r.parseSubs(words[1:]); err != nil {
				return r, nil, err
			}
			continue
		}
		if word == "]" || word == ";" {
			break
		}
		key, value, given := strings.Cut(word, "=")
		switch {
		case slices.Contains(argNames, key) && (given || key == "watch"):
			r.args[key] = value
			if _, err := strconv.ParseInt(value, 0, 64); err != nil && slices.Contains(numberNames, key) {
				return r, nil, fmt.Errorf("%s: %w", word, err)
			}
		case !hasPath:
			r.path, hasPath = word, true
		default:
			return r, nil, fmt.Errorf("unexpected %q", word)
		}
	}
	return r, words, nil
}

// parseSubs parses operations up to the closing bracket, and leaves the bracket.
func (r *request) parseSubs(words []string) ([]string, error) {
	for len(words) > 0 && words[0] != "]" {
		if words[0] == ";" {
			words = words[1:]
			continue
		}
		sub, rest, err := parseRequest(words)
		if err != nil {
			return nil, err
		}
		r.subs, words = append(r.subs, sub), rest
	}
	if len(words) == 0 {
		return nil, errors.New("a [ without a ]")
	}
	return words, nil
}

func (r *request) arg(name, otherwise string) string {
	if v, ok := r.args[name]; ok {
		return v
	}
	return otherwise
}

func (r *request) num(name string, otherwise int64) int64 {
	v, ok := r.args[name]
	if !ok {
		return otherwise
	}
	n, _ := strconv.ParseInt(v, 0, 64) // parseRequest has checked the number
	return n
}

// list returns a comma-separated argument.
func (r *request) list(name string) []string {
	if v := r.args[name]; v != "" {
		return strings.Split(v, ",")
	}
	return nil
}

// aclNames has names of ACLs that sequences use often; other ACLs are written as
// perms:scheme:id,...
var aclNames = map[string]string{
	"open":   "31:world:anyone",
	"read":   "1:world:anyone",
	"auth":   "31:auth:",
	"u1":     "31:digest:u1:fpT/y03U+EjItKZOSLGvjnJlyng=",
	"mixed":  "1:world:anyone,31:digest:u1:fpT/y03U+EjItKZOSLGvjnJlyng=",
	"noread": "30:world:anyone",
	"local":  "31:ip:127.0.0.1",
}

// acl encodes an ACL; "none" is the empty ACL.
func (b record) acl(text string) (record, error) {
	switch text {
	case nullText:
		return b.i32(-1), nil
	case "none":
		return b.i32(0), nil
	}
	if named, ok := aclNames[text]; ok {
		text = named
	}
	entries := strings.Split(text, ",")
	b = b.i32(int32(len(entries)))
	for _, e := range entries {
		parts := strings.SplitN(e, ":", 3)
		perms, err := strconv.ParseInt(parts[0], 0, 32)
		if err != nil || len(parts) < 3 {
			return nil, fmt.Errorf("%q is no ACL", text)
		}
		b = b.i32(int32(perms)).str(parts[1]).str(parts[2])
	}
	return b, nil
}

// frame encodes the request with its header. cut= removes bytes from its end.
func (r *request) frame(n *names, xid int32) ([]byte, error) {
	code := opCodes[r.op]
	if r.op == "op" {
		code = int32(r.num("code", 0))
	}
	b := record{}.i32(int32(r.num("xid", int64(xid)))).i32(code)
	b, err := r.encode(b, n)
	return b[:max(0, len(b)-int(r.num("cut", 0)))], err
}

func (r *request) encode(b record, n *names) (_ record, err error) {
	path := n.path(r.path)
	version := int32(r.num("version", -1))
	switch r.op {
	case "create", "create2", "createContainer", "createTTL":
		flags := map[string]int64{"createContainer": 4, "createTTL": 5}[r.op]
		if b, err = b.str(path).str(r.arg("data", "")).acl(r.arg("acl", "open")); err != nil {
			return nil, err
		}
		b = b.i32(int32(r.num("flags", flags)))
		if r.op == "createTTL" {
			b = b.i64(r.num("ttl", 1e9))
		}
	case "delete", "check":
		b = b.str(path).i32(version)
	case "exists", "getData", "getChildren", "getChildren2":
		_, watch := r.args["watch"]
		b = b.str(path).flag(watch)
	case "setData":
		b = b.str(path).str(r.arg("data", "")).i32(version)
	case "setACL":
		if b, err = b.str(path).acl(r.arg("acl", "open")); err != nil {
			return nil, err
		}
		b = b.i32(version)
	case "getACL", "sync", "getEphemerals", "getAllChildrenNumber", "deleteContainer":
		b = b.str(path)
	case "checkWatches", "removeWatches":
		b = b.str(path).i32(int32(r.num("type", 3)))
	case "addWatch":
		b = b.str(path).i32(int32(r.num("mode", 0)))
	case "multi", "multiRead":
		for i := range r.subs {
			sub := &r.subs[i]
			if b, err = sub.encode(b.i32(opCodes[sub.op]).flag(false).i32(-1), n); err != nil {
				return b, err
			}
		}
		b = b.i32(-1).flag(true).i32(-1)
	case "reconfig":
		b = b.str(nullText).str(nullText).str(nullText).i64(-1)
	case "auth":
		b = b.i32(0).str(r.arg("scheme", "digest")).str(r.arg("auth", "u1:p1"))
	case "sasl":
		b = b.str(r.arg("data", ""))
	case "setWatches", "setWatches2":
		z, err := n.toZxid(r.arg("zxid", "+0"))
		if err != nil {
			return b, err
		}
		b = b.i64(z)
		for i, list := range []string{"data", "exist", "child", "persistent", "recursive"} {
			if i < 3 || r.op == "setWatches2" {
				b = b.strs(n.paths(r.list(list)))
			}
		}
	case "op":
		body, err := hex.DecodeString(r.arg("hex", ""))
		if err != nil {
			return b, err
		}
		b = append(b, body...)
	}
	return b, nil
}
