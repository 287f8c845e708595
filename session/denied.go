package session

import (
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// A deniedError is a refusal by an ACL. It unwraps to zk.ErrNoAuth.
type deniedError struct {
	permission string // that the request needs
	path       string // of the znode whose ACL decides, as the server knows the path
	identities []string
}

func (e *deniedError) Error() string {
	return fmt.Sprintf("permission denied: the ACL of the znode %s on the servers (getAcl %s) does not give %s to this client, which is %s",
		e.path, e.path, e.permission, strings.Join(e.identities, " and "))
}

func (e *deniedError) Unwrap() error { return zk.ErrNoAuth }

// denied explains the refusal of a request on a path as the server knows the path.
// Other errors are returned as they are.
func (m *shared) denied(err error, op int32, full string) error {
	if err == zk.ErrInvalidACL {
		return fmt.Errorf("%w: the ACL for %s is not valid for this client, which is %s (the scheme auth needs session.WithAuth or WithSASL)",
			err, full, strings.Join(m.identities(), " and "))
	}
	if err != zk.ErrNoAuth || full == "" {
		return err
	}
	e := &deniedError{permission: "READ", path: full, identities: m.identities()}
	switch op {
	case wire.OpCreate, wire.OpCreateContainer:
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

// failure returns the error of an answer that is a refusal, with the reason if an
// ACL is the reason.
func (m *shared) failure(c *wire.Call) error {
	err := failureOf(c)
	if err != nil && !c.Own {
		err = m.denied(err, c.Op, c.Path)
	}
	return err
}

// identities returns the names under which ACLs know this client, without secrets.
func (m *shared) identities() []string {
	list := []string{"world:anyone"}
	for _, c := range m.cfg.auth {
		id := c.scheme
		if user, _, ok := strings.Cut(string(c.auth), ":"); ok && c.scheme == "digest" {
			id += ":" + user
		}
		list = append(list, id)
	}
	if m.cfg.sasl != nil {
		id := "sasl"
		if named, ok := m.cfg.sasl.(fmt.Stringer); ok {
			id = named.String()
		}
		list = append(list, id)
	}
	return list
}
