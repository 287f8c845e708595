package session

import "github.com/go-zookeeper/zk"

type ephemeralConfig struct {
	sequential bool
	acl        []zk.ACL
}

// An EphemeralOption changes a default of Manager.Ephemeral.
type EphemeralOption func(*ephemeralConfig) error

// WithSequence lets the server append a number to the name, which starts with
// a GUID besides, as Session.CreateProtected makes it. No other znode can be in
// the way, and the name is another one in every session: Ephemeral.Path tells it.
func WithSequence() EphemeralOption {
	return func(c *ephemeralConfig) error {
		c.sequential = true
		return nil
	}
}

// WithEphemeralACL sets the ACL of the znode, instead of the Manager's default.
// Without the permission to read it, its removal by somebody else goes unnoticed,
// and to write it, Set fails.
func WithEphemeralACL(acl ...zk.ACL) EphemeralOption {
	return func(c *ephemeralConfig) error {
		if err := checkACL(acl); err != nil {
			return invalid("WithEphemeralACL", "%v", err)
		}
		c.acl = append([]zk.ACL(nil), acl...)
		return nil
	}
}
