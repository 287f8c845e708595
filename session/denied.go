package session

import (
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// A deniedError is a refusal by an ACL. It unwraps to zk.ErrNoAuth.
type deniedError struct {
	permission string // the permission that the request needs
	path       string // of the znode whose ACL decides, as the server knows the path
	identities []string
}

func (e *deniedError) Error() string {
	return fmt.Sprintf("permission denied: the ACL of the znode %s on the servers (getAcl %s) does not give %s to this client, which is %s",
		e.path, e.path, e.permission, strings.Join(e.identities, " and "))
}

func (e *deniedError) Unwrap() error { return zk.ErrNoAuth }

// denied adds an explanation to err if err is a refusal by an ACL, and returns any other
// error unchanged. The path full includes the chroot.
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

// failure returns the error of a refused call. If an ACL is the reason, the error
// explains the refusal.
func (m *shared) failure(c *wire.Call) error {
	err := failureOf(c)
	if err != nil && !c.Own {
		err = m.denied(err, c.Op, c.Path)
	}
	return err
}

// identities returns the names by which ACLs know this client, without secrets.
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
