package session

import "fmt"

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
	if int(s) < len(ephemeralStatusNames) {
		return ephemeralStatusNames[s]
	}
	return fmt.Sprintf("EphemeralStatus(%d)", uint8(s))
}

// mergeStatus adds a status to those that a reader has not seen: the newest
// replaces an older one, but a Conflict stays.
func mergeStatus(unseen []EphemeralStatus, st EphemeralStatus) []EphemeralStatus {
	last := len(unseen) - 1
	switch {
	case last < 0 || unseen[last] == Conflict && st != Conflict:
		return append(unseen, st)
	case last > 0 && st == Conflict:
		return unseen[:last] // an older Conflict is there to tell
	default:
		unseen[last] = st
		return unseen
	}
}

// maxUnseenStatus is the most that mergeStatus makes: a Conflict and what
// followed.
const maxUnseenStatus = 2

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
	var unseen []EphemeralStatus
	for len(e.status) > 0 {
		select {
		case old := <-e.status:
			unseen = append(unseen, old)
		default: // its reader was faster
		}
	}
	for _, st := range mergeStatus(unseen, st) {
		e.status <- st
	}
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
