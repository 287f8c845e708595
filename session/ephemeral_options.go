package session

import "github.com/go-zookeeper/zk"

type ephemeralConfig struct {
	sequential bool
	acl        []zk.ACL
}

// An EphemeralOption changes a default of Manager.Ephemeral.
type EphemeralOption func(*ephemeralConfig) error

// WithSequence lets the server append a number to the name. The name also starts with a
// GUID, as in Session.CreateProtected. So no other znode can be in the way, and the name
// differs in every session: Ephemeral.Path returns it.
func WithSequence() EphemeralOption {
	return func(c *ephemeralConfig) error {
		c.sequential = true
		return nil
	}
}

// WithEphemeralACL sets the ACL of the znode in place of the Manager's default. If the
// ACL denies us to read the znode, its removal by another client goes unnoticed. If the
// ACL denies us to write the znode, Set fails.
func WithEphemeralACL(acl ...zk.ACL) EphemeralOption {
	return func(c *ephemeralConfig) error {
		if err := checkACL(acl); err != nil {
			return invalid("WithEphemeralACL", "%v", err)
		}
		c.acl = append([]zk.ACL(nil), acl...)
		return nil
	}
}
