package jute

import "encoding/binary"

const (
	WatchXid = -1 // of a watch event
	PingXid  = -2 // of the reply to any ping, whatever xid the ping had

	NoZxid      = -1
	stateSynced = 3

	// ReplyHeader is the length of the header of a reply, with the length of the frame.
	ReplyHeader = 4 + 16
)

// AppendHeader begins a frame: room for its length, and a reply header.
func AppendHeader(b []byte, xid int32, zxid int64, code Code) []byte {
	b = append(b, 0, 0, 0, 0)
	b = AppendInt32(b, xid)
	b = AppendInt64(b, zxid)
	return AppendInt32(b, int32(code))
}

// EndFrame fills in the length of the frame that begins at start.
func EndFrame(b []byte, start int) []byte {
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start-4))
	return b
}

// AppendMultiHeader appends the header of one result of a multi, or of its end.
func AppendMultiHeader(b []byte, op OpCode, done bool, code Code) []byte {
	b = AppendInt32(b, int32(op))
	b = AppendBool(b, done)
	return AppendInt32(b, int32(code))
}

// AppendMultiError appends the result of an operation of a multi that failed.
func AppendMultiError(b []byte, code Code) []byte {
	b = AppendMultiHeader(b, OpError, false, code)
	return AppendInt32(b, int32(code))
}

// AppendEvent appends the frame of a watch event.
func AppendEvent(b []byte, ev EventType, path string, zxid int64) []byte {
	start := len(b)
	b = AppendHeader(b, WatchXid, zxid, OK)
	b = AppendInt32(b, int32(ev))
	b = AppendInt32(b, stateSynced)
	return EndFrame(AppendString(b, path), start)
}
