package session

// State is what a Manager can say about its session.
type State uint8

const (
	// Connecting: there is no session yet, and one is being opened.
	Connecting State = iota
	// Connected: there is a session, and requests are answered.
	Connected
	// Suspended: the connection broke. The session may live; holders keep what
	// they hold until Deadline.
	Suspended
	// Lost: the session is gone, and its ephemerals with it. Connecting follows.
	Lost
	// Closed: Close was called, or Connect has failed. Nothing follows.
	Closed
)

var stateNames = [...]string{"Connecting", "Connected", "Suspended", "Lost", "Closed"}

func (s State) String() string { return nameOf(stateNames[:], uint8(s), "State") }
