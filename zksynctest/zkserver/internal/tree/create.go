package tree

import "github.com/go-zksync/toolkit/zksynctest/zkserver/internal/jute"

// createKind has the properties of a znode that its flags and the operation ask for.
type createKind struct {
	sequential, ephemeral bool
	owner                 int64 // of a container or a TTL node
	hopeless              bool  // to be refused in the end, for want of a ttl
}

func (s *Store) createKind(r *jute.Request) (k createKind, code jute.Code) {
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
		return k, jute.ErrBadArguments
	}
	if ttl && !s.Rules.TTL {
		return k, jute.ErrUnimplemented
	}
	switch {
	case ttl && (r.TTL <= 0 || r.TTL > maxTTL), !ttl && r.TTL >= 0:
		return k, jute.ErrBadArguments
	case r.Op == jute.OpCreateTTL && !ttl:
		k.hopeless = true
	case ttl:
		k.owner = ownerTTL | r.TTL
	case r.Op == jute.OpCreateContainer:
		k.owner, k.ephemeral = ownerContainer, false
	}
	return k, jute.OK
}

// Create makes the znode that r asks for, on behalf of session.
func (t *Txn) Create(r *jute.Request, session int64) (string, *Node, jute.Code) {
	s := t.s
	kind, code := s.createKind(r)
	if code != jute.OK {
		return "", nil, code
	}
	if r.Null {
		return "", nil, jute.ErrMarshalling
	}
	path := r.Path
	parentPath, _, ok := splitPath(path)
	if !ok {
		return "", nil, jute.ErrBadArguments
	}
	acl, ok := s.fixACL(r.ACL, t.ids)
	if !ok {
		return "", nil, jute.ErrInvalidACL
	}
	parent := s.nodes[parentPath]
	if parent == nil {
		return "", nil, jute.ErrNoNode
	}
	if !Allowed(parent.ACL(), jute.PermCreate, t.ids) {
		return "", nil, jute.ErrNoAuth
	}
	counter := t.counter(parent)
	if kind.sequential {
		path = sequenceName(path, counter)
	}
	if !validPath(path) {
		return "", nil, jute.ErrBadArguments
	}
	if s.nodes[path] != nil {
		return "", nil, jute.ErrNodeExists
	}
	if parent.isEphemeral() {
		return "", nil, jute.ErrNoChildrenForEphemerals
	}
	if t.exceedsQuota(path, 1, len(r.Data)) {
		return "", nil, jute.ErrQuotaExceeded
	}
	if kind.hopeless {
		// A real server lets this through, and then falls over it.
		return "", nil, jute.ErrBadArguments
	}

	n := &Node{
		Rights: s.acls.share(acl), czxid: t.Zxid, mzxid: t.Zxid, pzxid: t.Zxid,
		ctime: t.now, mtime: t.now, Owner: kind.owner,
	}
	if r.Data != nil {
		n.Data = append([]byte{}, r.Data...)
	}
	if kind.ephemeral {
		n.Owner = session
	}
	t.save(parentPath, parent, false, false)
	s.insert(path, n)
	t.save(path, n, true, false)
	t.count(parent, counter)
	t.accountNew(path, n)
	t.changed(StepPut, n)
	t.changed(StepCount, parent)
	if n.isReapable() {
		t.Aging = append(t.Aging, n)
	}
	t.Events = append(t.Events, Change{jute.EventCreated, path, parentPath, acl, parent.ACL()})
	return path, n, jute.OK
}

// count notes a create under parent. The stored counter only ever grows, which is
// why it stays at the greatest int32 for ever; and the one step from -2 is taken
// on its own, because -1 means "none given" in the server's log.
func (t *Txn) count(parent *Node, was int32) {
	next := was + 1
	if t.Multi {
		if t.counters == nil {
			t.counters = map[*Node]int32{}
		}
		t.counters[parent] = next
	}
	if next == -1 {
		next = parent.creates + 1
	}
	if next > parent.creates {
		parent.creates, parent.pzxid = next, t.Zxid
	}
}

// counter is the number the next sequential child of parent gets.
func (t *Txn) counter(parent *Node) int32 {
	if n, ok := t.counters[parent]; ok {
		return n
	}
	return parent.creates
}
