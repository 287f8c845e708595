package session

// EphemeralStatus is what has become of the znode of an Ephemeral.
type EphemeralStatus uint8

const (
	// Absent: the znode is not there. The session was lost, somebody has removed
	// it, or its creation has failed; it is being created.
	Absent EphemeralStatus = iota
	// Present: the znode is there, owned by the present session. It stays so
	// while the connection is down, until the session is known to be lost.
	Present
	// Conflict: somebody else's znode has that name. It is left alone, and ours is
	// created as soon as it has gone.
	Conflict
)

var ephemeralStatusNames = [...]string{"Absent", "Present", "Conflict"}

func (s EphemeralStatus) String() string {
	return nameOf(ephemeralStatusNames[:], uint8(s), "EphemeralStatus")
}

// tell says what has become of the znode, and why if it is not there.
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

// fail says that the server refuses to create the znode.
func (e *Ephemeral) fail(err error) {
	e.mu.Lock()
	if !isClosed(e.decided) {
		e.refusal = err
		e.decide()
	}
	e.mu.Unlock()
	e.tell(Absent, "", err)
}
