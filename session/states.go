package session

// State is the state of a Manager's session.
type State uint8

const (
	// Connecting: there is no session yet, and the Manager is opening one.
	Connecting State = iota
	// Connected: there is a session, and the servers answer requests.
	Connected
	// Suspended: the connection broke. The session may live. Holds continue until the
	// Deadline.
	Suspended
	// Lost: the session and its ephemerals are gone. Connecting follows.
	Lost
	// Closed: Close was called, or Connect has failed. Nothing follows.
	Closed
)

var stateNames = [...]string{"Connecting", "Connected", "Suspended", "Lost", "Closed"}

func (s State) String() string { return nameOf(stateNames[:], uint8(s), "State") }
