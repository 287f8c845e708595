package session

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// protectedPrefix and a GUID begin the name of a protected znode, so that its creator can
// find it again. Curator and go-zookeeper use the same form.
const (
	protectedPrefix = "_c_"
	guidLength      = 36
)

// Protect puts a new GUID in front of the name in path: "/locks/lock-" becomes
// "/locks/_c_<guid>-lock-". If the answer to the creation of such a znode is lost, the
// GUID finds the znode.
func Protect(path string) string {
	name := strings.LastIndexByte(path, '/') + 1
	return path[:name] + protectedPrefix + newGUID() + "-" + path[name:]
}

// newGUID returns a random UUID in the usual form.
func newGUID() string {
	var g [16]byte
	rand.Read(g[:]) // rand.Read never returns an error, by its documentation
	g[6] = g[6]&0x0f | 0x40
	g[8] = g[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", g[:4], g[4:6], g[6:8], g[8:10], g[10:])
}

// guidOf returns the prefix and the GUID of a protected name, and "" for any other name.
func guidOf(name string) string {
	n := len(protectedPrefix) + guidLength
	if len(name) > n && strings.HasPrefix(name, protectedPrefix) && name[n] == '-' {
		return name[:n+1]
	}
	return ""
}

// CreateProtected creates a znode whose name begins with a GUID, as Protect makes it, and
// returns the path of the znode. If the answer is lost, CreateProtected looks for the
// znode behind a commit (see SyncQuorum), and creates the znode again only if it does not
// exist. If the call fails because ctx ended, a znode that it may have created is removed
// in the background while the session lasts. Without the permission to list the
// directory, a sequential znode cannot be found.
func (s *Session) CreateProtected(ctx context.Context, path string, data []byte, flags int32, acl ...zk.ACL) (string, error) {
	// Before Protect: behind a GUID the last components "." and ".." would be valid.
	if err := checkPath(path, sequential(flags)); err != nil {
		return "", opError("create", path, err)
	}
	// One GUID for all attempts, so that a look-up finds the znode of each of them.
	return s.createAs(ctx, path, data, flags, acl, nil)
}

// createAs is CreateProtected. If removing is not nil, it waits for the outcome of a request that was sent even if ctx has
// ended, and calls removing with the channel of the janitor if it fails although it may have created a znode.
func (s *Session) createAs(ctx context.Context, path string, data []byte, flags int32, acl []zk.ACL, removing func(<-chan error)) (string, error) {
	protected := Protect(path)
	r := s.m.records.create(protected, data, flags, acl)
	r.Awaited = removing != nil
	paths, _, err := createProtected(ctx, s, protected, !sequential(flags), r, removing, func(c *wire.Call) ([]string, []zk.MultiResponse, error) {
		path, err := s.m.createdPath(c, nil)
		if err != nil {
			return nil, nil, err
		}
		return []string{path}, nil, nil
	})
	if err != nil {
		return "", opError("create", path, err)
	}
	return paths[0], nil
}

// MultiProtected is Multi for a transaction that creates one or more znodes of the same
// path, made by Protect. It determines the outcome like CreateProtected, and returns the
// paths of those znodes. If the transaction has happened but its answer was lost, the
// results are nil, and the paths are the paths of the znodes that still exist: at least
// one.
func (s *Session) MultiProtected(ctx context.Context, ops ...any) ([]string, []zk.MultiResponse, error) {
	path, exact := "", true
	var at []int
	for i, op := range ops {
		if create, ok := op.(*zk.CreateRequest); ok && guidOf(lastName(create.Path)) != "" {
			if path != "" && path != create.Path {
				return nil, nil, opError("multi", create.Path, errNotOneProtected)
			}
			// One path has one GUID, so one look-up finds the znodes of all the creates.
			path, exact = create.Path, exact && !sequential(create.Flags)
			at = append(at, i)
		}
	}
	if path == "" {
		return nil, nil, opError("multi", "", errNotOneProtected)
	}
	r := s.m.records.multi(ops)
	paths, results, err := createProtected(ctx, s, path, exact, r, nil, func(c *wire.Call) (paths []string, results []zk.MultiResponse, err error) {
		if results, err = s.m.multiAnswer(c, nil, len(ops)); err != nil {
			return nil, results, err
		}
		for _, i := range at {
			paths = append(paths, results[i].String)
		}
		return paths, results, nil
	})
	return paths, results, opError("multi", path, err)
}

// errNotOneProtected reports a programming error of MultiProtected's caller.
var errNotOneProtected error = &sentinel{"want one or more creates of exactly one path made by Protect", zk.ErrBadArguments}

func lastName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// createProtected sends r until the outcome of r is known. It returns the result of
// created for the answer, or, if the answer was lost, the paths of the znodes that exist.
// exact reports that the server appends no number to path. removing is described at createAs.
func createProtected(ctx context.Context, s *Session, path string, exact bool, r *wire.Request, removing func(<-chan error),
	created func(*wire.Call) ([]string, []zk.MultiResponse, error)) (_ []string, _ []zk.MultiResponse, err error) {
	dir, name := split(path)
	guid := guidOf(name)
	remove := func(paths []string, removing func(<-chan error)) {
		if exact {
			paths = []string{path} // so that the janitor need not list dir, which may be forbidden
		}
		gone := s.janitor.add(&chore{dir: dir, guid: guid, paths: paths})
		if removing != nil {
			removing(gone)
		}
	}
	// The caller has gone when this outcome arrives, so nobody else removes the znode.
	r.Late = func(c *wire.Call) {
		if c.Err == wire.ErrUnsent {
			return
		}
		switch classOfCall(c) {
		case ClassOK, ClassConnectionLost, ClassUnknown:
			// Without an answer that names the znodes, the janitor looks for the GUID.
			paths, _, _ := created(c)
			remove(paths, nil)
		}
	}
	looking := ctx
	if r.Awaited {
		looking = s.hold
	}
	var f *failures
	defer func() { err = f.end(ctx, err) }()
	for round := 0; ; round++ {
		// try and not repeat: a repetition without a look could create a second znode.
		c, err := s.requests.try(ctx, r)
		if err == nil {
			paths, results, err := created(c)
			if ClassOf(err) == ClassUnknown {
				// Such a refusal, or an answer that cannot be decoded, does not prove that
				// the znode was not created.
				remove(nil, removing)
			}
			return paths, results, err
		}
		// After any other error the request was not carried out, or Late gets its outcome, or
		// the session is over.
		if ClassOf(err) != ClassConnectionLost {
			return nil, nil, err
		}
		f = f.orNew(ctx, s.m, wire.OpName(r.Op), path)
		f.note(err)
		found, err := lookForProtected(looking, s, path, exact)
		// The look-up has failed: the znode may exist.
		if err != nil {
			remove(nil, removing)
			return nil, nil, err
		}
		if len(found) > 0 {
			return found, nil, nil
		}
		if err := s.Pause(ctx, round); err != nil {
			return nil, nil, err
		}
	}
}

// lookForProtected returns the paths of the znodes that were created as path: path itself
// if exact, and otherwise the paths in its directory that carry its GUID. If it returns no
// paths, no such znode exists, and no request of an earlier connection will create one.
func lookForProtected(ctx context.Context, s *Session, path string, exact bool) ([]string, error) {
	dir, name := split(path)
	// The servers refuse later requests of an earlier connection. A sync would not suffice:
	// a leader that was deposed answers a sync, and shows nothing of a create that its
	// successor has committed.
	if err := s.SyncQuorum(ctx, dir); err != nil {
		return nil, err
	}
	if exact {
		ok, _, err := s.Exists(ctx, path)
		// An exists that is refused proves that the znode exists.
		if ok || ClassOf(err) == ClassNoAuth {
			return []string{path}, nil
		}
		return nil, err
	}
	names, _, err := s.ChildNames(ctx, dir)
	switch ClassOf(err) {
	case ClassOK:
		var found []string
		for other := range names {
			if guidOf(other) == guidOf(name) {
				found = append(found, join(dir, other))
			}
		}
		return found, nil
	case ClassNoNode:
		return nil, nil
	}
	return nil, err
}
