package session

import (
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// proves returns the evidence for the lease that the answer to c provides.
func proves(c *wire.Call) evidence {
	if c.Err != nil {
		return proofNothing
	}
	// A follower refuses some requests without asking its leader.
	if c.Code != 0 {
		return proofContact
	}
	switch c.Op {
	case wire.OpSync:
		return proofLeader
	// A deposed leader answers every request except transactions.
	case wire.OpCreate, wire.OpCreateContainer, wire.OpDelete, wire.OpSetData:
		return proofCommit
	case wire.OpMulti:
		// The server answers a transaction without operations without looking at the
		// session. One that failed is committed, too, as quorumOf knows. It does not count
		// here: the arguments for the lease are about transactions without an error.
		if !c.MultiEmpty() && c.MultiCode() == 0 {
			return proofCommit
		}
	}
	return proofContact
}

// armsWatch reports whether the answer to a read with a watch has armed the watch.
func armsWatch(c *wire.Call) bool {
	return c.Err == nil && (c.Code == 0 || c.Code == codeNoNode && c.Op == wire.OpExists)
}

// failureOf returns the error of a call, nil if the call succeeded.
func failureOf(c *wire.Call) error {
	if c.Err != nil {
		return c.Err
	}
	return errorOfCode(c.Code)
}

// classOfCall returns the Class of the outcome of a call.
func classOfCall(c *wire.Call) Class {
	if c.Err != nil {
		return ClassOf(c.Err)
	}
	return classOfCode(c.MultiCode())
}

// quorumOf returns nil if the answer to a records.quorum proves a commit.
func quorumOf(c *wire.Call) error {
	if err := failureOf(c); err != nil {
		return err
	}
	switch classOfCall(c) {
	case ClassLost, ClassTransient, ClassConnectionLost:
		return errorOfCode(c.MultiCode())
	}
	// An answer with a result is a proof, whether or not the check passed. A server that
	// refuses the request without asking the leader answers without a result.
	if len(c.Body) < wire.MultiHeaderSize {
		return wire.ErrMalformed
	}
	return nil
}

// A read that broke its connection is repeated, because the next server may answer
// better. Every break adds to the guilt of the read. At maxGuilt the read ends with the
// reason. Two answers that are too large or too slow reach maxGuilt. Answers that stop in
// the middle count less, and four of them reach maxGuilt, because the network may have
// failed at that moment.
const (
	maxGuilt       = 4
	minAnswerSpeed = 16 << 10 // bytes a second
)

// guilt returns the amount that a failed attempt adds to the guilt of its request.
func guilt(err error) int {
	// Not errors.As: the cause of a ctx may wrap the LostAnswer of another call.
	if lost, ok := err.(*wire.LostAnswer); ok {
		return lost.Guilt
	}
	return 0
}

// errManyAnswers is the end of a connection on which answers keep the answer to a commit of a holder waiting.
var errManyAnswers = fmt.Errorf("%w: too many answers arrive ahead of the answer that would save a hold: read less at once, or raise session.WithTimeout",
	ErrAnswerTooSlow)

// A deniedError is a refusal by an ACL. It unwraps to zk.ErrNoAuth.
type deniedError struct {
	permission string // the permission that the request needs
	path       string // of the znode whose ACL decides, as the server knows the path
	identities []string
}

func (e *deniedError) Error() string {
	hint := ""
	for _, id := range e.identities {
		// An ACL has the hash of user and password, and the server accepts any password.
		if strings.HasPrefix(id, "digest:") {
			hint = fmt.Sprintf(" (with another password %s is another identity)", id)
		}
	}
	return fmt.Sprintf("permission denied: the ACL of the znode %s on the servers (getAcl %s) does not give %s to this client, which is %s%s",
		e.path, e.path, e.permission, strings.Join(e.identities, " and "), hint)
}

func (e *deniedError) Unwrap() error { return zk.ErrNoAuth }

// denied adds an explanation to err if err is a refusal by an ACL, and returns any other
// error unchanged. The path full includes the chroot.
func (c *config) denied(err error, op int32, full string) error {
	if err == zk.ErrInvalidACL {
		return fmt.Errorf("%w: the ACL for %s is not valid for this client, which is %s (the scheme auth needs session.WithAuth or WithSASL)",
			err, full, strings.Join(c.identities(), " and "))
	}
	if err != zk.ErrNoAuth || full == "" {
		return err
	}
	e := &deniedError{permission: "READ", path: full, identities: c.identities()}
	switch op {
	case wire.OpCreate, wire.OpCreateContainer:
		// The ACL of the parent decides about creates and deletes.
		e.permission = "CREATE"
		e.path, _ = split(full)
	case wire.OpDelete:
		e.permission = "DELETE"
		e.path, _ = split(full)
	case wire.OpSetData:
		e.permission = "WRITE"
	}
	return e
}

// identities returns the names by which ACLs know this client, without secrets.
func (c *config) identities() []string {
	list := []string{"world:anyone"}
	for _, a := range c.auth {
		id := a.scheme
		if user, _, ok := strings.Cut(string(a.auth), ":"); ok && a.scheme == "digest" {
			id += ":" + user
		}
		list = append(list, id)
	}
	if c.sasl != nil {
		id := "sasl"
		if named, ok := c.sasl.(fmt.Stringer); ok {
			id = named.String()
		}
		list = append(list, id)
	}
	return list
}
