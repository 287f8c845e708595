package session

// EphemeralStatus is the state of the znode of an Ephemeral.
type EphemeralStatus uint8

const (
	// Absent: the znode does not exist, because the session was lost, another client has
	// deleted the znode, or the creation has failed. The Ephemeral tries to create it.
	Absent EphemeralStatus = iota
	// Present: the znode exists, owned by the present session. The status stays Present
	// while the connection is down, until the session is lost.
	Present
	// Conflict: a znode of another client has the name. The Ephemeral leaves it
	// untouched, and creates its own znode when the other znode is gone.
	Conflict
)

var ephemeralStatusNames = [...]string{"Absent", "Present", "Conflict"}

func (s EphemeralStatus) String() string {
	return nameOf(ephemeralStatusNames[:], uint8(s), "EphemeralStatus")
}
