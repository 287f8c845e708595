package session

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/go-zookeeper/zk"
)

// orDefault checks an ACL given for one znode and falls back on the Manager's.
func (s *Session) orDefault(acl []zk.ACL) ([]zk.ACL, error) {
	if len(acl) == 0 {
		return s.m.cfg.acl, nil
	}
	if err := checkACL(acl); err != nil {
		return nil, fmt.Errorf("%w: %w", zk.ErrInvalidACL, err)
	}
	return acl, nil
}

func sequential(flags int32) bool { return flags&zk.FlagSequence != 0 && flags < zk.FlagContainer }

// createRequest checks what a create is given and words it.
func (s *Session) createRequest(path string, data []byte, flags int32, acl []zk.ACL) (*request, error) {
	if err := checkPath(path, sequential(flags)); err != nil {
		return nil, err
	}
	if flags < 0 || flags > zk.FlagContainer {
		return nil, fmt.Errorf("%w: %d, want zk.FlagPersistent, FlagEphemeral, FlagSequence, FlagEphemeralSequential or FlagContainer", zk.ErrInvalidFlags, flags)
	}
	acl, err := s.orDefault(acl)
	if err != nil {
		return nil, err
	}
	full := s.m.full(path)
	r := &request{op: opCreate, path: full, size: stringSize(full) + bufferSize(data) + aclSize(acl) + intSize}
	if flags == zk.FlagContainer {
		r.op = opCreateContainer
	}
	r.fill = func(b []byte) []byte {
		return appendInt(appendACL(appendBuffer(appendString(b, full), data), acl), flags)
	}
	return r, nil
}

func (s *Session) createdPath(c *call) (string, error) {
	if err := s.failure(c); err != nil {
		return "", err
	}
	d := decoder{b: c.body}
	path := d.string()
	if d.bad {
		return "", errMalformed
	}
	return s.m.strip(path), nil
}

// Create makes a znode and returns its path, to which the server has appended
// a number if flags has zk.FlagSequence. Without an acl the Manager's default
// is used. flags may be zk.FlagContainer, for a directory that the server
// removes when it has become empty.
//
// If the connection breaks before the answer the error is ErrConnectionLost, and
// if ctx or the session ends before it, theirs: the znode may or may not have
// been created. CreateProtected knows better.
func (s *Session) Create(ctx context.Context, path string, data []byte, flags int32, acl ...zk.ACL) (string, error) {
	r, err := s.createRequest(path, data, flags, acl)
	if err != nil {
		return "", opError("create", path, err)
	}
	c, err := s.try(ctx, r)
	if err != nil {
		return "", opError("create", path, err)
	}
	created, err := s.createdPath(c)
	return created, opError("create", path, err)
}

// MakeDir creates path with the directories above it, unless they are there.
// They are container znodes, which the server removes when they have become
// empty, where the server has those, and ordinary ones otherwise; so is the
// chroot. It is repeated over lost connections.
func (s *Session) MakeDir(ctx context.Context, path string, acl ...zk.ACL) error {
	if err := checkPath(path, false); err != nil {
		return opError("create", path, err)
	}
	if err := s.makeDir(ctx, s.m.full(path), acl); err != nil {
		return opError("create", path, err)
	}
	return nil
}

func (s *Session) makeDir(ctx context.Context, full string, acl []zk.ACL) error {
	acl, err := s.orDefault(acl)
	if err != nil {
		return err
	}
	hangups := 0
	for round := 0; full != "/"; round++ {
		if err := s.Pause(ctx, round-1); err != nil {
			return err
		}
		// The chroot is where other things live too, so it stays when empty.
		container := len(full) > len(s.m.chroot) && s.m.containers.usable() && hangups < 2
		r := &request{op: opCreate, path: full, size: stringSize(full) + intSize + aclSize(acl) + intSize}
		flags := int32(zk.FlagPersistent)
		if container {
			r.op, flags = opCreateContainer, zk.FlagContainer
		}
		r.fill = func(b []byte) []byte {
			return appendInt(appendACL(appendBuffer(appendString(b, full), []byte{}), acl), flags)
		}
		c, err := s.try(ctx, r)
		if ClassOf(err) == ClassConnectionLost {
			// Some servers that do not know the operation hang up without a word.
			if container {
				hangups++
			}
			continue
		}
		if err != nil {
			return err
		}
		switch {
		case container && c.code == codeUnimplemented:
			s.m.containers.lacking()
		case container && c.code == 0:
			s.m.containers.works()
		case !container && hangups >= 2 && c.code == 0:
			s.m.containers.suspect()
			hangups = 0
		}
		if container && c.code == codeUnimplemented {
			continue
		}
		switch err := s.failure(c); ClassOf(err) {
		case ClassOK, ClassNodeExists:
			return nil
		case ClassNoNode:
			dir, _ := split(full)
			if err := s.makeDir(ctx, dir, acl); err != nil {
				return err
			}
		default:
			return err
		}
	}
	return nil
}

// write sends a request that is safe to repeat only if it carries a version.
func (s *Session) write(ctx context.Context, r *request, version int32) (*call, error) {
	if version < 0 {
		c, err := s.try(ctx, r)
		if err == nil {
			err = s.failure(c)
		}
		return c, err
	}
	c, lost, err := s.repeat(ctx, r)
	if err != nil {
		return nil, err
	}
	err = s.failure(c)
	if class := ClassOf(err); lost && (class == ClassBadVersion || class == ClassNoNode) {
		// Either the first attempt has done it or somebody else got in between.
		err = fmt.Errorf("%w (repeated: %w)", ErrConnectionLost, err)
	}
	return c, err
}

// Set changes the data of a znode whose version is the given one; -1 is any.
// With a version it is repeated over lost connections, which cannot do it twice.
// The error is ErrConnectionLost where it may or may not have happened: without a
// version when the answer was lost, and with one when the repetition found
// another version.
func (s *Session) Set(ctx context.Context, path string, data []byte, version int32) (*zk.Stat, error) {
	if err := checkPath(path, false); err != nil {
		return nil, opError("set", path, err)
	}
	full := s.m.full(path)
	c, err := s.write(ctx, &request{op: opSetData, path: full, size: stringSize(full) + bufferSize(data) + intSize, fill: func(b []byte) []byte {
		return appendInt(appendBuffer(appendString(b, full), data), version)
	}}, version)
	if err != nil {
		return nil, opError("set", path, err)
	}
	d := decoder{b: c.body}
	stat := d.stat()
	if d.bad {
		return nil, opError("set", path, errMalformed)
	}
	return stat, nil
}

// Delete removes a znode whose version is the given one; -1 is any. What is
// said at Set of repetition and of ErrConnectionLost holds here too.
func (s *Session) Delete(ctx context.Context, path string, version int32) error {
	if err := checkPath(path, false); err != nil {
		return opError("delete", path, err)
	}
	_, err := s.write(ctx, s.deleteRequest(path, version), version)
	return opError("delete", path, err)
}

func (s *Session) deleteRequest(path string, version int32) *request {
	full := s.m.full(path)
	return &request{op: opDelete, path: full, size: stringSize(full) + intSize, fill: func(b []byte) []byte {
		return appendInt(appendString(b, full), version)
	}}
}

// Sync waits until the server that we are connected to has caught up with the
// leader: what is read afterwards is no older than that leader's state at the time of
// the call. It does not prove that the leader has not been deposed: see SyncQuorum. It
// is repeated over lost connections.
func (s *Session) Sync(ctx context.Context, path string) error {
	if err := checkPath(path, false); err != nil {
		return opError("sync", path, err)
	}
	full := s.m.full(path)
	c, _, err := s.repeat(ctx, &request{op: opSync, path: full, size: stringSize(full), fill: func(b []byte) []byte {
		return appendString(b, full)
	}})
	if err == nil {
		err = s.failure(c)
	}
	return opError("sync", path, err)
}

// read sends a read, over lost connections, and opens the answer. With a watch
// it returns one that was armed by this very read, unless the server armed none.
func (s *Session) read(ctx context.Context, op int32, name, path string, watched bool) (*call, *Watch, error) {
	if err := checkPath(path, false); err != nil {
		return nil, nil, opError(name, path, err)
	}
	full := s.m.full(path)
	r := &request{op: op, path: full, size: stringSize(full) + boolSize, fill: func(b []byte) []byte {
		return appendBool(appendString(b, full), watched)
	}}
	var w *Watch
	if watched {
		key := watchKey{full, dataWatch}
		if op == opGetChildren2 {
			key.kind = childWatch
		}
		e := s.hub.pin(key)
		defer s.hub.unpin(e)
		r.answered = func(c *call) {
			if c.code == 0 || c.code == codeNoNode && op == opExists {
				w = s.hub.subscribe(key, c.conn, c.code != 0)
			}
		}
		r.late = func(*call) {
			if w != nil {
				w.Stop()
			}
		}
	}
	c, _, err := s.repeat(ctx, r)
	if err != nil {
		return nil, nil, opError(name, path, err)
	}
	if err := s.failure(c); err != nil && !(op == opExists && c.code == codeNoNode) {
		return nil, nil, opError(name, path, err)
	}
	return c, w, nil
}

func (s *Session) get(ctx context.Context, path string, watched bool) ([]byte, *zk.Stat, *Watch, error) {
	c, w, err := s.read(ctx, opGetData, "get", path, watched)
	if err != nil {
		return nil, nil, nil, err
	}
	d := decoder{b: c.body}
	data, stat := d.buffer(), d.stat()
	return data, stat, w, decoded(&d, "get", path, w)
}

func (s *Session) exists(ctx context.Context, path string, watched bool) (bool, *zk.Stat, *Watch, error) {
	c, w, err := s.read(ctx, opExists, "exists", path, watched)
	if err != nil {
		return false, nil, nil, err
	}
	if c.code == codeNoNode {
		return false, nil, w, nil
	}
	d := decoder{b: c.body}
	stat := d.stat()
	return true, stat, w, decoded(&d, "exists", path, w)
}

// ChildNames is Children for who looks through a long list once: the names come
// in the server's order, which is none, and are parts of one string that holds them
// all, so that strings.Clone is for those to be kept.
func (s *Session) ChildNames(ctx context.Context, path string) (iter.Seq[string], *zk.Stat, error) {
	c, _, err := s.read(ctx, opGetChildren2, "children", path, false)
	if err != nil {
		return nil, nil, err
	}
	d := decoder{b: c.body}
	names, stat := d.list(), d.stat()
	if err := decoded(&d, "children", path, nil); err != nil {
		return nil, nil, err
	}
	return names, stat, nil
}

func (s *Session) children(ctx context.Context, path string, watched bool) ([]string, *zk.Stat, *Watch, error) {
	c, w, err := s.read(ctx, opGetChildren2, "children", path, watched)
	if err != nil {
		return nil, nil, nil, err
	}
	d := decoder{b: c.body}
	names, stat := d.strings(), d.stat()
	slices.Sort(names)
	return names, stat, w, decoded(&d, "children", path, w)
}

func decoded(d *decoder, op, path string, w *Watch) error {
	if !d.bad {
		return nil
	}
	if w != nil {
		w.Stop()
	}
	return opError(op, path, errMalformed)
}

// Get returns the data of a znode and its Stat. Like every read it is repeated
// over lost connections.
func (s *Session) Get(ctx context.Context, path string) ([]byte, *zk.Stat, error) {
	data, stat, _, err := s.get(ctx, path, false)
	return data, stat, err
}

// Exists tells whether there is a znode, and its Stat if there is.
func (s *Session) Exists(ctx context.Context, path string) (bool, *zk.Stat, error) {
	ok, stat, _, err := s.exists(ctx, path, false)
	return ok, stat, err
}

// Children returns the names of a znode's children, sorted, and its Stat. Names of a
// list above 64 KiB share strings of about 4 KiB: strings.Clone a name to keep it for
// long.
func (s *Session) Children(ctx context.Context, path string) ([]string, *zk.Stat, error) {
	names, stat, _, err := s.children(ctx, path, false)
	return names, stat, err
}
