package zkserver

import (
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/jute"
)

// createKind is what the flags and the operation ask for.
type createKind struct {
	sequential, ephemeral bool
	owner                 int64 // of a container or a TTL node
	hopeless              bool  // to be refused in the end, for want of a ttl
}

func (s *Server) createKind(r *jute.Request) (k createKind, code Code) {
	ttl := false
	switch r.Flags {
	case jute.FlagPersistent, jute.FlagContainer: // only the operation makes it a container
	case jute.FlagEphemeral:
		k.ephemeral = true
	case jute.FlagSequential:
		k.sequential = true
	case jute.FlagEphemeralSequential:
		k.ephemeral, k.sequential = true, true
	case jute.FlagTTL:
		ttl = true
	case jute.FlagTTLSequential:
		ttl, k.sequential = true, true
	default:
		return k, ErrBadArguments
	}
	if ttl && !s.cfg.ExtendedTypes {
		return k, ErrUnimplemented
	}
	switch {
	case ttl && (r.TTL <= 0 || r.TTL > maxTTL), !ttl && r.TTL >= 0:
		return k, ErrBadArguments
	case r.Op == OpCreateTTL && !ttl:
		k.hopeless = true
	case ttl:
		k.owner = ownerTTL | r.TTL
	case r.Op == OpCreateContainer:
		k.owner, k.ephemeral = ownerContainer, false
	}
	return k, jute.OK
}

// create makes the znode that r asks for, on behalf of session.
func (t *txn) create(r *jute.Request, session int64) (string, *node, Code) {
	s := t.s
	kind, code := s.createKind(r)
	if code != jute.OK {
		return "", nil, code
	}
	if r.Null {
		return "", nil, ErrMarshalling
	}
	path := r.Path
	parentPath, _, ok := splitPath(path)
	if !ok {
		return "", nil, ErrBadArguments
	}
	acl, ok := s.fixACL(r.ACL, t.ids)
	if !ok {
		return "", nil, ErrInvalidACL
	}
	parent := s.tree.nodes[parentPath]
	if parent == nil {
		return "", nil, ErrNoNode
	}
	if !allowed(parent.acl(), jute.PermCreate, t.ids) {
		return "", nil, ErrNoAuth
	}
	counter := t.counter(parent)
	if kind.sequential {
		path = sequenceName(path, counter)
	}
	if !validPath(path) {
		return "", nil, ErrBadArguments
	}
	if s.tree.nodes[path] != nil {
		return "", nil, ErrNodeExists
	}
	if parent.isEphemeral() {
		return "", nil, ErrNoChildrenForEphemerals
	}
	if t.exceedsQuota(path, 1, len(r.Data)) {
		return "", nil, ErrQuotaExceeded
	}
	if kind.hopeless {
		// A real server lets this through, and then falls over it.
		return "", nil, ErrBadArguments
	}

	n := &node{
		rights: s.acls.share(acl), czxid: t.zxid, mzxid: t.zxid, pzxid: t.zxid,
		ctime: t.now, mtime: t.now, owner: kind.owner,
	}
	if r.Data != nil {
		n.data = append([]byte{}, r.Data...)
	}
	if kind.ephemeral {
		n.owner = session
	}
	t.save(parentPath, parent, false, false)
	s.tree.insert(path, n)
	t.save(path, n, true, false)
	t.count(parent, counter)
	t.accountNew(path, n)
	t.changed(stepPut, n)
	t.changed(stepCount, parent)
	if n.isReapable() {
		s.reapLater(n, time.Now())
	}
	t.events = append(t.events, change{EventCreated, path, parentPath, acl, parent.acl()})
	return path, n, jute.OK
}

// count notes a create under parent. The stored counter only ever grows, which is
// why it stays at the greatest int32 for ever; and the one step from -2 is taken
// on its own, because -1 means "none given" in the server's log.
func (t *txn) count(parent *node, was int32) {
	next := was + 1
	if t.multi {
		if t.counters == nil {
			t.counters = map[*node]int32{}
		}
		t.counters[parent] = next
	}
	if next == -1 {
		next = parent.creates + 1
	}
	if next > parent.creates {
		parent.creates, parent.pzxid = next, t.zxid
	}
}

// counter is the number the next sequential child of parent gets.
func (t *txn) counter(parent *node) int32 {
	if n, ok := t.counters[parent]; ok {
		return n
	}
	return parent.creates
}
