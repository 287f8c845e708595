package differential

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// generator generates random sequences. Requests that succeed stay within the sequence's own
// znodes. The generator leaves out requests that crash a real server: a check outside of a multi,
// createTTL without a TTL, and addWatch without a path.
type generator struct {
	*rand.Rand
	dropped bool // a connection was dropped, which the server may not notice at once
}

// sequence is the random sequence of a seed.
func sequence(seed, number uint64) (lines []string) {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, number))}
	add := func(client int, text string) { lines = append(lines, strconv.Itoa(client)+" "+text) }
	if g.often(5) {
		for _, part := range []string{"/d", "~", "~/a", "~/a/zookeeper_limits data=count=2,bytes=9", "~/a/zookeeper_stats data=count=0,bytes=0"} {
			add(0, "create "+quotaRoot+part)
		}
		defer func() { add(0, "getData "+quotaRoot+"~/a/zookeeper_stats") }()
	}
	for range 2 + g.IntN(5) {
		add(0, "create "+g.good()+g.create("create"))
	}
	client := 0
	for range 5 + g.IntN(35) {
		if g.IntN(100) < 35 {
			client = g.IntN(clients)
		}
		op := g.pick(weighted)
		text := g.line(op)
		add(client, text)
		if (op == "closeSession" || op == doBytes || op == "op") && g.IntN(10) < 8 {
			add(client, g.line(g.of(doConnect, doResume)))
		}
	}
	return lines
}

// weight is the relative frequency of a choice.
type weight struct {
	what string
	n    int
}

var weighted = []weight{
	{"create", 14}, {"create2", 4}, {"createContainer", 3}, {"createTTL", 3}, {"delete", 10}, {"setData", 10},
	{"setACL", 4}, {"getACL", 3}, {"exists", 7}, {"getData", 8}, {"getChildren", 4}, {"getChildren2", 4},
	{"multi", 10}, {"multiRead", 3}, {"sync", 1}, {"ping", 1}, {"auth", 3}, {"addWatch", 4}, {"removeWatches", 3},
	{"checkWatches", 2}, {"setWatches", 2}, {"setWatches2", 2}, {"getEphemerals", 2}, {"getAllChildrenNumber", 2},
	{"whoAmI", 1}, {"sasl", 1}, {"reconfig", 1}, {"closeSession", 2}, {doConnect, 1}, {doResume, 3}, {doDrop, 1},
	{doBytes, 1}, {"op", 1},
}

func (g *generator) pick(list []weight) string {
	total := 0
	for _, w := range list {
		total += w.n
	}
	n := g.IntN(total)
	for _, w := range list {
		if n -= w.n; n < 0 {
			return w.what
		}
	}
	return ""
}

func (g *generator) of(list ...string) string { return list[g.IntN(len(list))] }

// often returns true with a probability of n percent.
func (g *generator) often(n int) bool { return g.IntN(100) < n }

var (
	goodPaths = []string{"~/a", "~/b", "~/c", "~/a/x", "~/a/y", "~/a/x/1", "~/b/z", "~/e"}
	badPaths  = []string{
		"~/", "~//a", "~/a/", "~/.", "~/..", "~/a/../b", `"~/\x00"`, `"~/\x01"`, "~/é", "~/\U0001F600", `"~/\ue000"`,
		`"~/\ufff0"`, `"~/\xff"`, `"~/a b"`, "~/none/x", "null", `""`, "a", "/", "/zookeeper", "/zookeeper/config",
		"/zookeeper/quota", "/none/x",
	}
)

func (g *generator) good() string { return g.of(goodPaths...) }

// path returns a path for a request that only reads, or that fails outside of the sequence's own
// znodes.
func (g *generator) path() string {
	switch n := g.IntN(100); {
	case n < 85:
		return g.good()
	case n < 93:
		return "~"
	}
	return g.of(badPaths...)
}

// own returns a path within the sequence's znodes, or an invalid path.
func (g *generator) own() string {
	for {
		if path := g.path(); !strings.HasPrefix(path, "/") {
			return path
		}
	}
}

var aclTexts = []string{
	"read", "auth", "u1", "mixed", "noread", "local", "none", "null", "31:bogus:x", "31:world:other", "31:digest:x",
	"0:world:anyone", "255:world:anyone", "31:world:anyone,31:world:anyone", "1:ip:10.0.0.0/8", "31:ip:127.0.0.0/8",
	"31:ip:300.0.0.1", "2:world:anyone,1:auth:", "30:world:anyone,1:digest:u2:o9NxcCGDPOlcV7JVhmKHOf5ctVE=",
}

func (g *generator) data() string {
	return g.of("", "", " data=x", " data=yy", " data=null", ` data="\x00\xff"`)
}

func (g *generator) version() string {
	if g.often(60) {
		return ""
	}
	return " version=" + g.of("0", "0", "1", "2", "-2", "100", "-2147483648")
}

func (g *generator) create(op string) string {
	text := g.data()
	if g.often(20) {
		text += " acl=" + g.of(aclTexts...)
	}
	switch {
	case op == "createTTL":
		text += g.of(" flags=5", " flags=5", " flags=6")
		text += g.of("", "", " ttl=1", " ttl=0", " ttl=-1", " ttl=1099511627775", " ttl=1099511627776")
		if g.often(10) {
			text += " flags=" + g.of("0", "1", "4") + " ttl=1000"
		}
	case g.often(60):
		text += " flags=" + g.of("1", "1", "1", "2", "2", "3", "3", "0", "4", "5", "6", "7", "-1")
	}
	return text
}

func (g *generator) watch() string {
	if g.often(40) {
		return " watch"
	}
	return ""
}

// line returns an operation with its arguments.
func (g *generator) line(op string) string {
	text := op
	switch op {
	case "create", "create2", "createContainer", "createTTL":
		text += " " + g.own() + g.create(op)
	case "delete":
		text += " " + g.path() + g.version()
	case "check":
		text += " " + g.path() + g.version()
	case "setData":
		text += " " + g.own() + g.data() + g.version()
	case "setACL":
		text += " " + g.own() + g.version()
		if g.often(80) {
			text += " acl=" + g.of(aclTexts...)
		}
	case "exists", "getData", "getChildren", "getChildren2":
		text += " " + g.path() + g.watch()
	case "getACL", "sync":
		text += " " + g.path()
	case "getEphemerals":
		text += " " + g.of("~", "~/a", "~/e", `""`, "/", "null")
	case "getAllChildrenNumber":
		text += " " + g.of("~", "~/a", "~/b", "~/none")
	case "multi", "multiRead":
		text += g.multi(op)
	case "auth":
		text += g.of("", "", " auth=u2:p2", " auth=super:test", " auth=abc", " auth=null", " scheme=ip", " scheme=world",
			" scheme=bogus", " scheme=null")
	case "addWatch":
		path := g.path()
		for path == nullText {
			path = g.path()
		}
		text += " " + path + g.of("", " mode=1", " mode=1", " mode=2")
	case "checkWatches", "removeWatches":
		if g.dropped && op == "checkWatches" {
			return g.line("removeWatches")
		}
		kind := g.of("1", "2", "3", "3", "3")
		if g.often(8) {
			kind = g.of("4", "5", "0", "6") // some types are known only to later releases
		}
		text += " " + g.path() + " type=" + kind
	case "setWatches", "setWatches2":
		text += " zxid=" + g.of("+0", "+5", "+12", "+20", "-1", "0", "+1000000")
		for i, list := range []string{"data", "exist", "child", "persistent", "recursive"} {
			if n := g.IntN(3); n > 0 && (i < 3 || op == "setWatches2") {
				text += " " + list + "=" + strings.Join([]string{g.good(), g.good()}[:n], ",")
			}
		}
	case "sasl":
		text += g.data()
	case doConnect:
		text += g.of("", "", " timeout=0", " timeout=1000000", " timeout=-1", " zxid=+0", " zxid=+1000000") + g.of("", " readonly=none", " readonly=true")
	case doResume:
		text += " s=" + strconv.Itoa(g.IntN(5)) + g.of("", "", "", " password=zero", " password=short", " zxid=+1", " zxid=+1000000", " timeout=50000")
	case doDrop:
		g.dropped = true
	case doBytes:
		text += " hex=" + g.of("00000000", "ffffffff", "7fffffff", "00100000", "00000004deadbeef")
	case "op":
		text += " code=" + g.of("0", "10", "23", "55", "108", "-1", "-2", "1000")
	}
	if g.often(2) {
		switch op {
		case doConnect, doResume, doDrop, doBytes, "closeSession", "op":
		default:
			text += fmt.Sprintf(" cut=%d", 1+g.IntN(24))
		}
	}
	return text
}

var (
	inMulti     = []weight{{"create", 10}, {"create2", 4}, {"createContainer", 2}, {"createTTL", 2}, {"delete", 8}, {"setData", 8}, {"check", 6}}
	inMultiRead = []weight{{"getData", 5}, {"getChildren", 5}}
)

func (g *generator) multi(op string) string {
	list := inMulti
	if op == "multiRead" {
		list = inMultiRead
	}
	if g.often(4) {
		list = weighted[:12] // usually the other kind
	}
	var subs []string
	for range g.IntN(6) {
		sub := g.line(g.pick(list))
		sub, _, _ = strings.Cut(sub, " cut=")
		subs = append(subs, sub)
	}
	return " [" + strings.Join(subs, "; ") + "]"
}
