package zkserver

import "time"

// The flags of a create: not bits, but an enumeration.
const (
	flagPersistent          = 0
	flagEphemeral           = 1
	flagSequential          = 2
	flagEphemeralSequential = 3
	flagContainer           = 4
	flagTTL                 = 5
	flagTTLSequential       = 6
)

// createKind is what the flags and the operation ask for.
type createKind struct {
	sequential, ephemeral bool
	owner                 int64 // of a container or a TTL node
	hopeless              bool  // to be refused in the end, for want of a ttl
}

func (s *Server) createKind(r *request) (k createKind, code Code) {
	ttl := false
	switch r.flags {
	case flagPersistent, flagContainer: // only the operation makes it a container
	case flagEphemeral:
		k.ephemeral = true
	case flagSequential:
		k.sequential = true
	case flagEphemeralSequential:
		k.ephemeral, k.sequential = true, true
	case flagTTL:
		ttl = true
	case flagTTLSequential:
		ttl, k.sequential = true, true
	default:
		return k, ErrBadArguments
	}
	if ttl && !s.cfg.ExtendedTypes {
		return k, ErrUnimplemented
	}
	switch {
	case ttl && (r.ttl <= 0 || r.ttl > maxTTL), !ttl && r.ttl >= 0:
		return k, ErrBadArguments
	case r.op == OpCreateTTL && !ttl:
		k.hopeless = true
	case ttl:
		k.owner = ownerTTL | r.ttl
	case r.op == OpCreateContainer:
		k.owner, k.ephemeral = ownerContainer, false
	}
	return k, codeOK
}

// create makes the znode that r asks for, on behalf of session.
func (t *txn) create(r *request, session int64) (string, *node, Code) {
	s := t.s
	kind, code := s.createKind(r)
	if code != codeOK {
		return "", nil, code
	}
	if r.null {
		return "", nil, ErrMarshalling
	}
	path := r.path
	parentPath, _, ok := splitPath(path)
	if !ok {
		return "", nil, ErrBadArguments
	}
	acl, ok := s.fixACL(r.acl, t.ids)
	if !ok {
		return "", nil, ErrInvalidACL
	}
	parent := s.tree.nodes[parentPath]
	if parent == nil {
		return "", nil, ErrNoNode
	}
	if !allowed(parent.acl(), permCreate, t.ids) {
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
	if t.exceedsQuota(path, 1, len(r.data)) {
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
	if r.data != nil {
		n.data = append([]byte{}, r.data...)
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
	t.events = append(t.events, change{eventCreated, path, parentPath, acl, parent.acl()})
	return path, n, codeOK
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
