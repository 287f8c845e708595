package session

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// createdPath decodes the answer to a create. err is as in failure.
func (m *shared) createdPath(c *wire.Call, err error) (string, error) {
	if err := m.failure(c, err); err != nil {
		return "", err
	}
	d := wire.Decoder{B: c.Body}
	path := d.String()
	if d.Bad {
		return "", wire.ErrMalformed
	}
	return m.strip(path), nil
}

// Create creates a znode and returns its path. If flags has zk.FlagSequence, the server
// has appended a number to the path. Without an acl the Manager's default is used. flags
// may be zk.FlagContainer, for a directory that the server removes when the directory has
// become empty.
//
// If the connection breaks before the answer, the error is ErrConnectionLost. If ctx or
// the session ends before the answer, the error is the error of ctx or of the session. In
// these cases the znode may or may not have been created. CreateProtected determines the
// outcome.
func (s *Session) Create(ctx context.Context, path string, data []byte, flags int32, acl ...zk.ACL) (string, error) {
	c, err := s.requests.try(ctx, s.m.records.create(path, data, flags, acl))
	created, err := s.m.createdPath(c, err)
	return created, opError("create", path, err)
}

// createAwaited is Create of an ephemeral, but waits for the outcome of a request that was sent even if ctx has ended.
// So an error of ctx means that the znode was not created. zxid is the zxid of the answer: the creation zxid of the znode
// is not above it.
func (s *Session) createAwaited(ctx context.Context, path string, data []byte, acl []zk.ACL) (zxid int64, err error) {
	r := s.m.records.create(path, data, zk.FlagEphemeral, acl)
	r.Awaited = true
	c, err := s.requests.try(ctx, r)
	if _, err = s.m.createdPath(c, err); err != nil {
		return 0, opError("create", path, err)
	}
	return c.Zxid, nil
}

// MakeDir creates path and the directories above it, unless they exist. It creates
// container znodes, which the server removes when they have become empty. It creates
// ordinary znodes if the server has no containers, and for the chroot. MakeDir is
// repeated over lost connections.
func (s *Session) MakeDir(ctx context.Context, path string, acl ...zk.ACL) error {
	_, err := s.CreateDir(ctx, path, acl...)
	return err
}

// CreateDir is MakeDir, and reports whether it has created path. It reports false if another client may have
// done so: path existed, or an answer was lost.
func (s *Session) CreateDir(ctx context.Context, path string, acl ...zk.ACL) (created bool, err error) {
	if err := checkPath(path, false); err != nil {
		return false, opError("create", path, err)
	}
	created, err = makeDir(ctx, s, s.m.full(path), acl)
	return created, opError("create", path, err)
}

// makeDir is CreateDir for a path with the chroot. It creates the chroot, too, if
// necessary.
func makeDir(ctx context.Context, s *Session, full string, acl []zk.ACL) (created bool, err error) {
	acl, err = s.m.records.orDefault(acl)
	if err != nil {
		return false, err
	}
	hangups := 0
	var f *failures
	defer func() { err = f.end(ctx, err) }()
	note := func(err error) {
		f = f.orNew(ctx, s.m, "create", s.m.strip(full))
		f.note(err)
	}
	for round := 0; full != "/"; round++ {
		if err := s.Pause(ctx, round-1); err != nil {
			return false, err
		}
		// The chroot may be empty for a time and still be in use, so it is not a
		// container.
		container := len(full) > len(s.m.records.chroot) && s.m.containers.usable() && hangups < 2
		op, flags := wire.OpCreate, int32(zk.FlagPersistent)
		if container {
			op, flags = wire.OpCreateContainer, zk.FlagContainer
		}
		c, err := s.requests.try(ctx, &wire.Request{Op: op, Path: full, Record: wire.Encoder(nil).String(full).Buffer([]byte{}).ACL(acl).Int(flags)})
		if ClassOf(err) == ClassConnectionLost {
			note(err)
			// Some servers that do not know the operation close the connection without an
			// answer.
			if container {
				hangups++
			}
			continue
		}
		if err != nil {
			return false, err
		}
		switch {
		case container && c.Code == wire.CodeUnimplemented:
			s.m.containers.lacking()
			continue
		case container && c.Code == 0:
			s.m.containers.works()
		case !container && hangups >= 2 && c.Code == 0:
			// The server answers an ordinary create, so the operation is the likely reason
			// why it has closed two connections.
			s.m.containers.suspect()
			hangups = 0
		}
		switch err := s.m.failure(c, nil); ClassOf(err) {
		case ClassOK:
			return true, nil
		case ClassNodeExists:
			return false, nil
		case ClassNoNode:
			// After makeDir the loop tries again. Another client may remove the empty
			// parent in between, and the loop then makes the parent once more.
			if round >= 2 {
				note(err)
			}
			dir, _ := split(full)
			if _, err := makeDir(ctx, s, dir, acl); err != nil {
				return false, err
			}
		case ClassNoAuth:
			// A server checks the permission before it looks for the znode.
			if exists, failed := dirExists(ctx, s, full); exists || failed != nil {
				return false, failed
			}
			return false, err
		default:
			return false, err
		}
	}
	return false, nil
}

// dirExists reports whether a znode exists whose creation was refused. full has the
// chroot.
func dirExists(ctx context.Context, s *Session, full string) (bool, error) {
	// A refused create is a transaction, so the read shows no older state. An exists that is
	// refused proves that the znode exists.
	c, _, err := s.requests.repeat(ctx, &wire.Request{Op: wire.OpExists, Path: full, Record: wire.Encoder(nil).String(full).Bool(false)})
	if err == nil && c.Code != codeNoNode && c.Code != codeNoAuth {
		err = s.m.failure(c, nil)
	}
	return err == nil && c.Code != codeNoNode, err
}

// Set changes the data of a znode if the znode has the given version. Version -1 matches
// any version. With another version, Set is repeated over lost connections, because the
// repetition cannot take effect twice on one znode. A version does not tell a znode from a
// later znode of the same path: if another client deletes the znode and creates it again
// before the repetition, and the new znode has the same version, then the repetition changes
// the new znode, too. Where znodes are created again, use Multi, which is never repeated, with
// a CheckVersionRequest of a znode that stays and whose version every creation raises.
//
// The error is ErrConnectionLost if the write may or may not have happened: without a
// version if the answer was lost, and with a version if the repetition found another
// version.
func (s *Session) Set(ctx context.Context, path string, data []byte, version int32) (*zk.Stat, error) {
	c, err := s.requests.write(ctx, s.m.records.set(path, data, version), version)
	if err != nil {
		return nil, opError("set", path, err)
	}
	d := wire.Decoder{B: c.Body}
	stat := d.Stat()
	if d.Bad {
		return nil, opError("set", path, wire.ErrMalformed)
	}
	return stat, nil
}

// Delete removes a znode if the znode has the given version. Version -1 matches any
// version. Repetition, its effect on a znode that was created again, and ErrConnectionLost
// are as in Set.
func (s *Session) Delete(ctx context.Context, path string, version int32) error {
	_, err := s.requests.write(ctx, s.m.records.versioned(wire.OpDelete, path, version), version)
	return opError("delete", path, err)
}

// Sync waits until the connected server has caught up with its leader. Later reads are no
// older than the state of that leader at the time of the call. Sync does not prove that
// the leader is still the leader: see SyncQuorum. Sync is repeated over lost connections.
func (s *Session) Sync(ctx context.Context, path string) error {
	c, _, err := s.requests.repeat(ctx, s.m.records.sync(path))
	return opError("sync", path, s.m.failure(c, err))
}

// SyncQuorum waits until the connected server has applied every transaction that was
// committed when SyncQuorum was called, and proves that a quorum of the ensemble took
// part. Every later read of this Session shows the state at the time of the call, or a
// newer state.
//
// SyncQuorum commits a transaction that changes nothing, so the load on the ensemble is
// the load of a write. path is any path, and its znode need neither exist nor be
// readable. SyncQuorum is repeated over lost connections. It returns an error when ctx or
// the session ends.
func (s *Session) SyncQuorum(ctx context.Context, path string) error {
	// A leader that was deposed without noticing answers a sync, but commits nothing.
	c, _, err := s.requests.repeat(ctx, s.m.records.quorum(path))
	if err == nil {
		err = quorumOf(c)
	}
	return opError("sync", path, err)
}
