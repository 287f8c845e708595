package tree

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A quota of /a is in /zookeeper/quota/a: its limits in zookeeper_limits, and its use in
// zookeeper_stats. The server keeps the use up to date without a trace in the Stat.
const (
	quotaRoot  = "/zookeeper/quota"
	limitsName = "/zookeeper_limits"
	statsName  = "/zookeeper_stats"
)

// quotaFor is the path that a znode of that name below quotaRoot is about, or "".
func quotaFor(path, name string) string {
	if inner, ok := strings.CutPrefix(path, quotaRoot+"/"); ok {
		if subject, ok := strings.CutSuffix(inner, name); ok {
			return "/" + subject
		}
	}
	return ""
}

// quotaOf is the deepest path with limits that path belongs to, or "".
func (t *Tree) quotaOf(path string) string {
	if len(t.quotas) == 0 {
		return ""
	}
	for path != "" {
		if _, ok := t.quotas[path]; ok {
			return path
		}
		path = path[:max(strings.LastIndexByte(path, '/'), 0)]
	}
	return ""
}

// usage counts n and all below it.
func (n *Node) usage() (count, bytes int64) {
	count, bytes = 1, int64(len(n.Data))
	for _, child := range n.Children() {
		c, b := child.usage()
		count, bytes = count+c, bytes+b
	}
	return count, bytes
}

// used is the data of fresh stats.
func (t *Tree) used(subject string) []byte {
	count, bytes := int64(0), int64(0)
	if n := t.nodes[subject]; n != nil {
		count, bytes = n.usage()
	}
	return quotaNumbers{"count": count, "bytes": bytes}.encode()
}

// accountNew counts a znode that was just created.
func (t *Txn) accountNew(path string, n *Node) {
	if subject := quotaFor(path, statsName); subject != "" {
		n.Data = t.s.used(subject)
	}
	t.account(path, 1, len(n.Data))
}

// account adds to the use of the quota that path belongs to.
func (t *Txn) account(path string, count, bytes int) {
	subject := t.s.quotaOf(path)
	if subject == "" {
		return
	}
	statPath := quotaRoot + subject + statsName
	stat := t.s.nodes[statPath]
	if stat == nil {
		return
	}
	used, ok := parseQuota(stat.Data)
	if !ok {
		return // a client wrote there; a real server gives up here
	}
	t.save(statPath, stat, false, false)
	used["count"], used["bytes"] = used.get("count")+int64(count), used.get("bytes")+int64(bytes)
	stat.Data = used.encode()
	t.changed(StepData, stat)
}

// exceedsQuota reports whether a write goes beyond a hard limit, of the number of
// znodes if it adds some and of the bytes if it changes them. Only the rule quota
// makes limits count. Within a multi, the use by earlier operations does not count yet.
func (t *Txn) exceedsQuota(path string, count, bytes int) bool {
	if !t.s.Rules.Quota {
		return false
	}
	subject := t.s.quotaOf(path)
	if subject == "" {
		return false
	}
	numbers := func(name string) quotaNumbers {
		if n := t.s.nodes[quotaRoot+subject+name]; n != nil {
			q, _ := parseQuota(n.Data)
			return q
		}
		return nil
	}
	limits, used := numbers(limitsName), numbers(statsName)
	for _, u := range t.undo {
		if u.path == quotaRoot+subject+statsName && !u.created {
			used, _ = parseQuota(u.before.Data)
			break
		}
	}
	over := func(limit, what string, more int) bool {
		most := limits.get(limit)
		return more != 0 && most >= 0 && used.get(what)+int64(more) > most
	}
	return over("countHardLimit", "count", count) || over("byteHardLimit", "bytes", bytes)
}

// quotaNumbers is the data of limits and stats: key=number, separated by commas and
// semicolons.
type quotaNumbers map[string]int64

// get is -1 for a key that is missing.
func (q quotaNumbers) get(key string) int64 {
	if n, ok := q[key]; ok {
		return n
	}
	return -1
}

func parseQuota(data []byte) (quotaNumbers, bool) {
	q := quotaNumbers{}
	for _, pair := range strings.FieldsFunc(string(data), func(r rune) bool { return r == ',' || r == ';' }) {
		key, value, ok := strings.Cut(pair, "=")
		value, _, _ = strings.Cut(value, "=") // one too many, for the sake of old servers
		n, err := strconv.ParseInt(value, 10, 64)
		if !ok || err != nil {
			return nil, false
		}
		q[key] = n
	}
	return q, true
}

// encode puts count and bytes first, and the keys that old servers do not know behind a "=",
// where old servers do not look.
func (q quotaNumbers) encode() []byte {
	b := fmt.Appendf(nil, "count=%d,bytes=%d", q.get("count"), q.get("bytes"))
	first := true
	for _, key := range slices.Sorted(maps.Keys(q)) {
		if key == "count" || key == "bytes" {
			continue
		}
		if first {
			b = append(b, '=')
			first = false
		}
		b = fmt.Appendf(b, ";%s=%d", key, q[key])
	}
	return b
}
