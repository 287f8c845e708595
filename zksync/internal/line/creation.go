package line

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A creation is a transaction that creates ephemeral sequential znodes in a directory.
type creation struct {
	dir   *znode.Directory
	first []any // the operations before the creates
	name  string
	data  []byte
	n     int  // the number of znodes
	touch bool // also write to the directory: see Directory.Writable
}

var (
	// errAgain says that a transaction was refused, and may succeed when it is sent again.
	errAgain = errors.New("zksync: the transaction can be sent again")
	// errExhausted says that a directory cannot give another sequence number.
	errExhausted = errors.New("zksync: the counter of the directory is exhausted")
)

// checkSize returns ErrTooLarge if the largest transaction of a contender would not fit into a request.
// That is the transaction of join that replaces a contender and writes to the directory. Downgrade's
// transaction is smaller: the write to the directory has more bytes than a number. Without the check,
// a Lock would succeed, and a later hand-over or Downgrade would fail.
func (q *LocalQueue) checkSize() error {
	q.size.Do(func() {
		path := session.Protect(znode.Join(q.Dir.Path, q.Name))
		n, err := q.Manager.MultiSize(
			&zk.DeleteRequest{Path: path + "0000000000"},
			&zk.CreateRequest{Path: path, Data: q.Data, Flags: zk.FlagEphemeralSequential},
			&zk.SetDataRequest{Path: q.Dir.Path})
		if most := q.Manager.MaxRequest(); err == nil && n > most {
			err = fmt.Errorf("%w: %d bytes to replace a contender with an ID of %d bytes, where %d are allowed (see session.WithMaxRequest); shorten the ID", session.ErrTooLarge, n, len(q.Data), most)
		}
		q.large = err
	})
	return q.large
}

// send sends the transaction. It returns the paths of the znodes and, if the answer has
// it, the Stat of the directory. If it fails, failed is the index of the operation that
// the server has refused, -1 if the outcome is unknown. It fails with errAgain, and with
// errExhausted if the counter of the directory is exhausted.
func (cr *creation) send(ctx context.Context, s *session.Session) (paths []string, dir *zk.Stat, failed int, err error) {
	ops := cr.first
	path := session.Protect(znode.Join(cr.dir.Path, cr.name))
	for range cr.n {
		ops = append(ops, &zk.CreateRequest{Path: path, Data: cr.data, Flags: zk.FlagEphemeralSequential})
	}
	if cr.touch {
		ops = append(ops, &zk.SetDataRequest{Path: cr.dir.Path, Data: []byte{}, Version: -1})
	}
	paths, results, err := s.MultiProtected(ctx, ops...)
	if err == nil {
		// There are no results if the answer was lost and a look-up has found the znodes.
		if cr.touch && len(results) > 0 {
			// This transaction has changed the directory last. So the Stat has its zxid, and
			// counts its znodes.
			dir = results[len(results)-1].Stat
		}
		return paths, dir, 0, nil
	}
	// One operation has failed, and the server has carried out none of them; or nothing is
	// known.
	failed = session.FailedOp(results)
	if failed >= 0 && failed < len(cr.first) {
		return nil, nil, failed, err
	}
	switch session.ClassOf(err) {
	case session.ClassNoNode:
		// The server may have removed the container: it does so some time after the last child is
		// gone.
		if err = cr.dir.Create(ctx, s); err == nil {
			err = errAgain
		}
	case session.ClassNoAuth:
		// The ACL allows creates and no writes. The next attempt does not write, and the
		// contender lists the line instead.
		if cr.touch && failed == len(ops)-1 {
			cr.dir.Forbid()
			err = errAgain
		}
	case session.ClassNodeExists:
		// The GUID and the number make a name unique, until the counter stops.
		err = errExhausted
	}
	return nil, nil, failed, err
}
