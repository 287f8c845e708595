package differential

import (
	"fmt"
	"slices"
	"strings"
)

// frame is a message of a server, or an event of a connection, such as its end.
type frame struct {
	step   int    // number of the line that it answers; events answer no line
	op     string // name of the operation of that line, or event, connected, closed ...
	zxid   string
	err    int32
	fields []string
}

func (f frame) String() string {
	head := f.op
	if f.step > 0 {
		head = fmt.Sprintf("%d: %s", f.step, f.op)
	}
	if f.zxid != "" {
		head += fmt.Sprintf(" zxid %s err %d", f.zxid, f.err)
	}
	return strings.TrimSpace(head + " " + strings.Join(f.fields, " "))
}

// pathText replaces the root of the run by ~.
func (n *names) pathText(text string) string {
	for _, front := range []string{`"`, `"` + quotaRoot} {
		if inner, ok := strings.CutPrefix(text, front+n.root); ok {
			return front + "~" + inner
		}
	}
	return text
}

// decodeEvent reads the record of a watch event.
func (n *names) decodeEvent(zxid int64, err int32, r *reading) frame {
	f := frame{op: "event", zxid: n.zxid(zxid), err: err}
	kind, state, path := r.i32(), r.i32(), n.pathText(r.text())
	f.fields = []string{fmt.Sprintf("type %d state %d", kind, state), path + r.end()}
	return f
}

// decode reads the record of the answer to a step.
func (n *names) decode(number int, s *request, zxid int64, err int32, r *reading) frame {
	f := frame{step: number, op: s.op, zxid: n.zxid(zxid), err: err}
	// A real server can fail in the middle of a multiRead.
	if err == 0 || len(r.b) > 0 && (s.op == "multi" || s.op == "multiRead") {
		f.fields = n.decodeRecord(s.op, r)
	}
	if end := r.end(); end != "" {
		f.fields = append(f.fields, end)
	}
	return f
}

func (n *names) decodeRecord(op string, r *reading) (fields []string) {
	add := func(name, value string) { fields = append(fields, name+" "+value) }
	switch op {
	case "create":
		add("path", n.pathText(r.text()))
	case "create2", "createContainer", "createTTL":
		add("path", n.pathText(r.text()))
		add("stat", n.stat(r))
	case "exists", "setData", "setACL", "check":
		add("stat", n.stat(r))
	case "getData":
		add("data", r.text())
		add("stat", n.stat(r))
	case "getACL":
		add("acl", n.acl(r))
		add("stat", n.stat(r))
	case "getChildren":
		add("children", r.sorted())
	case "getChildren2":
		add("children", r.sorted())
		add("stat", n.stat(r))
	case "sync":
		add("path", n.pathText(r.text()))
	case "multi", "multiRead":
		return n.decodeMulti(r)
	case "addWatch":
		add("err", fmt.Sprint(r.i32()))
	case "sasl":
		add("token", r.text())
	case "getEphemerals":
		add("paths", strings.ReplaceAll(r.sorted(), n.root, "~"))
	case "getAllChildrenNumber":
		add("number", fmt.Sprint(r.i32()))
	case "whoAmI":
		var ids []string
		for range max(0, r.i32()) {
			ids = append(ids, r.text()+":"+r.text())
		}
		slices.Sort(ids) // a real server returns a set
		add("ids", fmt.Sprint(ids))
	}
	return fields
}

// acl reads an ACL. The server replaces an entry of scheme auth by digests with the same perms, in
// unspecified order, so acl sorts adjacent digests with the same perms.
func (n *names) acl(r *reading) string {
	count := r.i32()
	var list []string
	digests, kind := 0, "" // number of digests at the end, and their kind
	for range max(0, count) {
		if r.short {
			break
		}
		entry := fmt.Sprintf("%d:%s:", r.i32(), r.text())
		if entry != kind {
			digests, kind = 0, entry
		}
		list = append(list, entry+r.text())
		if digests++; strings.Contains(entry, "digest") {
			slices.Sort(list[len(list)-digests:])
		}
	}
	return fmt.Sprint(count, list)
}

// decodeMulti returns a field for each result.
func (n *names) decodeMulti(r *reading) (fields []string) {
	for !r.short {
		kind, done, err := r.i32(), r.flag(), r.i32()
		if done {
			return append(fields, fmt.Sprintf("end %d %d", kind, err))
		}
		text := fmt.Sprintf("%d/%d", kind, err)
		switch kind {
		case -1:
			text += fmt.Sprintf(" failed %d", r.i32())
		case 1:
			text += " path " + n.pathText(r.text())
		case 15:
			text += " path " + n.pathText(r.text()) + " stat " + n.stat(r)
		case 5:
			text += " stat " + n.stat(r)
		case 4:
			text += " data " + r.text() + " stat " + n.stat(r)
		case 8:
			text += " children " + r.sorted()
		case 2, 13:
		default:
			return append(fields, text+" of an unknown kind")
		}
		fields = append(fields, "("+text+")")
	}
	return fields
}
