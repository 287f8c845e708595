package session

import (
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// records builds requests from the arguments of calls, and checks the arguments.
type records struct {
	chroot chroot
	acl    []zk.ACL // of znodes without an explicit ACL
	max    int      // size of the largest request in bytes
}

// orDefault checks the ACL of a znode, and returns the Manager's default if acl is empty.
func (b *records) orDefault(acl []zk.ACL) ([]zk.ACL, error) {
	if len(acl) == 0 {
		return b.acl, nil
	}
	if err := checkACL(acl); err != nil {
		return nil, fmt.Errorf("%w: %w", zk.ErrInvalidACL, err)
	}
	return acl, nil
}

func sequential(flags int32) bool { return flags&zk.FlagSequence != 0 && flags < zk.FlagContainer }

// path begins a request whose record begins with the path. extra is the approximate size
// of the other fields.
func (b *records) path(op int32, path string, extra int) (*wire.Request, wire.Encoder) {
	r, record := pathRequest(op, b.chroot.full(path), extra)
	r.Invalid = checkPath(path, false)
	return r, record
}

// pathRequest is records.path for a path that includes the chroot, without a check.
func pathRequest(op int32, full string, extra int) (*wire.Request, wire.Encoder) {
	return &wire.Request{Op: op, Path: full}, make(wire.Encoder, 0, len(full)+extra+16).String(full)
}

// create builds a create of any kind.
func (b *records) create(path string, data []byte, flags int32, acl []zk.ACL) *wire.Request {
	invalid := checkPath(path, sequential(flags))
	if invalid == nil && (flags < 0 || flags > zk.FlagContainer) {
		invalid = fmt.Errorf("%w: %d, want zk.FlagPersistent, FlagEphemeral, FlagSequence, FlagEphemeralSequential or FlagContainer", zk.ErrInvalidFlags, flags)
	}
	if invalid == nil {
		acl, invalid = b.orDefault(acl)
	}
	full := b.chroot.full(path)
	if sequential(flags) && path == "/" {
		// The number follows the slash: the znode is in the root, or in the chroot, and not beside it.
		full = string(b.chroot) + path
	}
	r, record := pathRequest(wire.OpCreate, full, len(data)+32)
	if flags == zk.FlagContainer {
		// A server takes an ordinary create with this flag for the create of a persistent
		// znode.
		r.Op = wire.OpCreateContainer
	}
	r.Record, r.Invalid = record.Buffer(data).ACL(acl).Int(flags), invalid
	return r
}

// versioned builds a request of a path and a version.
func (b *records) versioned(op int32, path string, version int32) *wire.Request {
	r, record := b.path(op, path, 0)
	r.Record = record.Int(version)
	return r
}

func (b *records) set(path string, data []byte, version int32) *wire.Request {
	r, record := b.path(wire.OpSetData, path, len(data))
	r.Record = record.Buffer(data).Int(version)
	return r
}

// read builds a read of one znode.
func (b *records) read(op int32, path string, watched bool) *wire.Request {
	r, record := b.path(op, path, 0)
	r.Record = record.Bool(watched)
	if watched && r.Invalid == nil {
		r.Invalid = b.checkWatch(r.Path)
	}
	return r
}

func (b *records) sync(path string) *wire.Request {
	r, record := b.path(wire.OpSync, path, 0)
	r.Record = record
	return r
}

// checkRecord encodes a transaction of a single check of any version.
func checkRecord(full string) wire.Encoder {
	return wire.Encoder(nil).MultiHeader(wire.OpCheck).String(full).Int(-1).MultiEnd()
}

// syncRoot builds a sync of the Manager.
func syncRoot() *wire.Request {
	return &wire.Request{Op: wire.OpSync, Own: true, Record: wire.Encoder(nil).String("/")}
}

// quorumRoot builds a records.quorum of the Manager.
func quorumRoot() *wire.Request {
	return &wire.Request{Op: wire.OpMulti, Own: true, Beat: true, Record: checkRecord("/")}
}

// quorum builds a transaction of a single check, whose answer proves a commit: see
// quorumOf.
func (b *records) quorum(path string) *wire.Request {
	// If the check fails, the leader still proposes the transaction, as an error
	// transaction. The connected server answers the transaction after it has applied all
	// earlier transactions (PrepRequestProcessor, ProposalRequestProcessor,
	// CommitProcessor). Of a transaction without operations the leader would not even check
	// the session.
	full := b.chroot.full(path)
	return &wire.Request{Op: wire.OpMulti, Path: full, Record: checkRecord(full), Invalid: checkPath(path, false)}
}

// multi checks and encodes a transaction.
func (b *records) multi(ops []any) *wire.Request {
	multi := &wire.Request{Op: wire.OpMulti, Parts: make([]wire.Request, 0, len(ops))}
	record := make(wire.Encoder, 0, 128*len(ops)) // about the size of an operation with little data
	var err error
	// Without a request and a record for each operation: a queue deletes many znodes.
	versioned := func(code int32, path string, version int32) {
		full := b.chroot.full(path)
		err = checkPath(path, false)
		multi.Parts = append(multi.Parts, wire.Request{Op: code, Path: full})
		record = record.MultiHeader(code).String(full).Int(version)
	}
	for i, op := range ops {
		var r *wire.Request
		switch op := op.(type) {
		case *zk.CreateRequest:
			r = b.create(op.Path, op.Data, op.Flags, op.Acl)
		case *zk.SetDataRequest:
			r = b.set(op.Path, op.Data, op.Version)
		case *zk.DeleteRequest:
			versioned(wire.OpDelete, op.Path, op.Version)
		case *zk.CheckVersionRequest:
			versioned(wire.OpCheck, op.Path, op.Version)
		default:
			err = fmt.Errorf("%w: a %T, want *zk.CreateRequest, *zk.DeleteRequest, *zk.SetDataRequest or *zk.CheckVersionRequest", zk.ErrBadArguments, op)
		}
		if r != nil {
			err = r.Invalid
			multi.Parts = append(multi.Parts, wire.Request{Op: r.Op, Path: r.Path})
			record = append(record.MultiHeader(r.Op), r.Record...)
		}
		if err != nil {
			return &wire.Request{Op: wire.OpMulti, Invalid: fmt.Errorf("operation %d: %w", i+1, err)}
		}
	}
	multi.Record = record.MultiEnd()
	return multi
}

// checkSize returns an error if the record of a request is longer than the servers
// accept.
func (b *records) checkSize(record int) error {
	if size := wire.HeaderSize + record; size > b.max {
		return fmt.Errorf("%w: %d bytes, where %d are allowed (jute.maxbuffer of the servers; see WithMaxRequest)", ErrTooLarge, size, b.max)
	}
	return nil
}
