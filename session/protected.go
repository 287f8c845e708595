package session

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"
)

// protectedPrefix and the GUID behind it are how Curator, and go-zookeeper
// after it, mark a znode so that whoever created it finds it again.
const (
	protectedPrefix = "_c_"
	guidLength      = 36
)

// Protect puts a fresh GUID in front of the name in path: "/locks/lock-"
// becomes "/locks/_c_<guid>-lock-". A znode created so can be found again when
// the answer to its creation was lost.
func Protect(path string) string {
	dir, name := split(path)
	return join(dir, protectedPrefix+newGUID()+"-"+name)
}

// newGUID is a random UUID in the usual form.
func newGUID() string {
	var g [16]byte
	rand.Read(g[:]) // never fails, by its documentation
	g[6] = g[6]&0x0f | 0x40
	g[8] = g[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", g[:4], g[4:6], g[6:8], g[8:10], g[10:])
}

// guidOf returns the part of a protected name by which it is recognised, and
// an empty string for any other name.
func guidOf(name string) string {
	n := len(protectedPrefix) + guidLength
	if len(name) > n && strings.HasPrefix(name, protectedPrefix) && name[n] == '-' {
		return name[:n+1]
	}
	return ""
}

// CreateProtected creates a znode whose name begins with a GUID, as Protect
// makes it, and knows what came of it: when the answer is lost, the znode is
// looked up, behind a sync, and created again only if it is not there. If the
// call fails because ctx ended, whatever it may have created is removed in the
// background while the session lasts. The path returned is that of the znode.
func (s *Session) CreateProtected(ctx context.Context, path string, data []byte, flags int32, acl ...zk.ACL) (string, error) {
	if err := checkPath(path, sequential(flags)); err != nil {
		return "", opError("create", path, err)
	}
	protected := Protect(path)
	r, err := s.createRequest(protected, data, flags, acl)
	if err != nil {
		return "", opError("create", path, err)
	}
	created, c, err := s.protected(ctx, protected, r, s.createdPath)
	if err == nil && c != nil {
		created, err = s.createdPath(c)
	}
	return created, opError("create", path, err)
}

// MultiProtected is Multi for a transaction in which one create has a path
// made by Protect, and knows what came of it as CreateProtected does. It returns
// the path of that znode. The results are nil if the transaction is known to have
// happened but its answer was lost.
func (s *Session) MultiProtected(ctx context.Context, ops ...any) (string, []zk.MultiResponse, error) {
	at := -1
	for i, op := range ops {
		if create, ok := op.(*zk.CreateRequest); ok && guidOf(lastName(create.Path)) != "" {
			if at >= 0 {
				return "", nil, opError("multi", create.Path, errNotOneProtected)
			}
			at = i
		}
	}
	if at < 0 {
		return "", nil, opError("multi", "", errNotOneProtected)
	}
	path := ops[at].(*zk.CreateRequest).Path
	r, err := s.multiRequest(ops)
	if err != nil {
		return "", nil, opError("multi", path, err)
	}
	createdBy := func(c *call) (string, error) {
		results, err := s.multiAnswer(c, len(ops))
		if err != nil {
			return "", err
		}
		return results[at].String, nil
	}
	created, c, err := s.protected(ctx, path, r, createdBy)
	if err != nil || c == nil {
		return created, nil, opError("multi", path, err)
	}
	results, err := s.multiAnswer(c, len(ops))
	if err != nil {
		return "", results, opError("multi", path, err)
	}
	return results[at].String, results, nil
}

// errNotOneProtected is a programming error of MultiProtected's caller.
var errNotOneProtected = errors.New("want exactly one create of a path made by Protect")

func lastName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// protected sends r until it is known what came of it: either the answer is
// returned, or the path of the znode that was found in its stead. created reads
// an answer of r's kind.
func (s *Session) protected(ctx context.Context, path string, r *request, created func(*call) (string, error)) (string, *call, error) {
	dir, name := split(path)
	guid := guidOf(name)
	r.late = func(c *call) {
		if c.err != nil {
			s.janitor.add(&chore{dir: dir, guid: guid})
		} else if path, err := created(c); err == nil {
			s.janitor.add(&chore{dir: dir, path: path})
		}
	}
	for round := 0; ; round++ {
		c, err := s.try(ctx, r)
		if !errors.Is(err, ErrConnectionLost) {
			return "", c, err
		}
		// The first frame on every connection is a sync, so an absence is real:
		// this listing is behind it, and the server refuses what the old
		// connection may still bring.
		names, _, err := s.Children(ctx, dir)
		switch {
		case errors.Is(err, zk.ErrNoNode):
		case err != nil:
			s.janitor.add(&chore{dir: dir, guid: guid})
			return "", nil, err
		}
		if found := findGUID(names, guid); found != "" {
			return join(dir, found), nil, nil
		}
		if err := s.pause(ctx, round); err != nil {
			return "", nil, err
		}
	}
}

func findGUID(names []string, guid string) string {
	for _, name := range names {
		if strings.HasPrefix(name, guid) {
			return name
		}
	}
	return ""
}
