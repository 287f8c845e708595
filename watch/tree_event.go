package watch

import "fmt"

// A TreeEventType says what has become of a znode in a Cache.
type TreeEventType uint8

const (
	// Added: the znode exists, and did not exist when it was last reported.
	Added TreeEventType = iota + 1
	// Changed: the znode has other data than was last reported, or was deleted and
	// created again, or has become readable or unreadable.
	Changed
	// Removed: the znode does not exist any more.
	Removed
)

var treeEventTypeNames = [...]string{Added: "Added", Changed: "Changed", Removed: "Removed"}

// String returns the name of the constant.
func (t TreeEventType) String() string {
	if int(t) < len(treeEventTypeNames) && t > 0 {
		return treeEventTypeNames[t]
	}
	return fmt.Sprintf("TreeEventType(%d)", uint8(t))
}

// A TreeEvent is a change of one znode in a Cache. The events of one znode come in
// the order of zxids. A receiver that applies all events always has a tree: a znode
// is Added after its parent, and Removed after everything below it. Beyond that
// the order is the order in which the Cache has read the znodes.
type TreeEvent struct {
	Type TreeEventType
	State
	// Err is why the data or the children cannot be read, as zk.ErrNoAuth; nil
	// otherwise. State has what could be read.
	Err error
}
