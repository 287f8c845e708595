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

// tell sets the status of the znode, and the error if the znode is not present.
func (e *Ephemeral) tell(st EphemeralStatus, path string, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.path, e.err = path, err
	if st != Absent {
		e.decide()
	}
	if e.told && st == e.last {
		return
	}
	e.told, e.last = true, st
	push(e.status, st, Conflict)
}

// decide lets Manager.Ephemeral return; e.mu is held.
func (e *Ephemeral) decide() {
	if !isClosed(e.decided) {
		close(e.decided)
	}
}

// fail records that the server refuses to create the znode.
func (e *Ephemeral) fail(err error) {
	e.mu.Lock()
	if !isClosed(e.decided) {
		e.refusal = err
		e.decide()
	}
	e.mu.Unlock()
	e.tell(Absent, "", err)
}
