package zkserver

import (
	"fmt"
	"strings"
)

// String returns the operation as one line for failure messages: the time, the connection and the
// session, the request, its result, and the faults that struck it. "nothing done" marks a request
// that was lost before it was carried out.
//
//	12:00:01.500 conn 2 session 0x1004e4d88700001 xid 7 create /a: ok zxid 0x9 [Disconnect AfterCommit]
func (op Op) String() string {
	var b strings.Builder
	b.WriteString(op.Time.Format("15:04:05.000"))
	if op.Endpoint > 1 {
		fmt.Fprintf(&b, " endpoint %d", op.Endpoint)
	}
	fmt.Fprintf(&b, " conn %d", op.Conn)
	if op.Session != 0 {
		fmt.Fprintf(&b, " session %#x", op.Session)
	}
	switch op.Code {
	case OpConnect:
		b.WriteString(" connect")
	case OpWatchEvent:
		fmt.Fprintf(&b, " %v %s", op.Event, op.Path)
	default:
		fmt.Fprintf(&b, " xid %d %v", op.Xid, op.Code)
		if op.Path != "" {
			b.WriteString(" " + op.Path)
		}
	}
	for i, sub := range op.Sub {
		fmt.Fprintf(&b, "%s%v %s", []string{" {", ", "}[min(i, 1)], sub.Code, sub.Path)
		if sub.Err != 0 {
			fmt.Fprintf(&b, " (%s)", Code(sub.Err).String())
		}
	}
	if len(op.Sub) > 0 {
		b.WriteString("}")
	}
	switch {
	case op.Code == OpWatchEvent && op.Done:
		fmt.Fprintf(&b, ": sent zxid %#x", uint64(op.Zxid))
	case op.Code == OpWatchEvent:
		b.WriteString(": not sent")
	case op.Done:
		fmt.Fprintf(&b, ": %s zxid %#x", Code(op.Err).String(), uint64(op.Zxid))
	default:
		b.WriteString(": nothing done")
	}
	if op.Fault != "" {
		b.WriteString(" [" + op.Fault + "]")
	}
	return b.String()
}
