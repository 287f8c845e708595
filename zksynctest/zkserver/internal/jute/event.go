package jute

import "fmt"

// EventType is the type of a watch event, as it stands on the wire.
type EventType int32

// The types of watch events.
const (
	EventCreated         EventType = 1
	EventDeleted         EventType = 2
	EventDataChanged     EventType = 3
	EventChildrenChanged EventType = 4
)

// String returns the name the ZooKeeper sources give the type.
func (e EventType) String() string {
	switch e {
	case EventCreated:
		return "NodeCreated"
	case EventDeleted:
		return "NodeDeleted"
	case EventDataChanged:
		return "NodeDataChanged"
	case EventChildrenChanged:
		return "NodeChildrenChanged"
	}
	return fmt.Sprintf("event %d", int32(e))
}
