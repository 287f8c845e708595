package journal

import (
	"encoding/binary"
	"fmt"
)

// DiskSector is the unit that a disk writes as a whole or not at all. Of a write that was not
// synced, a crash of the machine leaves any sectors, and the file as long as it was, as
// it was to be, or anything between. The others read as zeros, because the file has only
// ever grown there.
const DiskSector = 512

// damagedFrame is an ErrCorrupt with the part of the frame that was read.
type damagedFrame struct {
	what string
	seen []byte // the head, and the rest if the head is whole
}

func (d *damagedFrame) Error() string { return fmt.Sprintf("%v: %s", ErrCorrupt, d.what) }

func (d *damagedFrame) Unwrap() error { return ErrCorrupt }

// Each write to the file begins with a frame of its own that has the place of the write
// in the file. It is written when everything before it was written, and synced if the
// journal syncs.
func appendBatch(b []byte, offset int64) []byte {
	start := len(b)
	return endDataFrame(appendNumber(beginDataFrame(b), stepBatch, offset), start)
}

// batchFrame is the length of the frame of appendBatch.
const batchFrame = frameExtra + 1 + 8

// tornWrite reports whether the frame at offset, of which seen was read, and then rest up
// to the end of the file, is of a write that a crash of the machine has cut short:
// sectors of the frame are missing, and no later write was begun. Nobody was told of such
// a write with DataSync. All other damage is damage.
func tornWrite(offset int64, seen, rest []byte) bool {
	return missesSectors(offset, seen) && !laterBatch(offset, append(seen[:len(seen):len(seen)], rest...))
}

// missesSectors reports whether the part of the frame in one of its sectors is all
// zeros. When the head of the frame is whole, the sectors in which the head is are there.
func missesSectors(offset int64, seen []byte) bool {
	whole := len(seen) > 8
	for at := 0; at < len(seen); {
		end := min(len(seen), at+DiskSector-int((offset+int64(at))%DiskSector))
		if !(whole && at < 8) && allZero(seen[at:end]) {
			return true
		}
		at = end
	}
	return false
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// laterBatch reports whether the beginning of a write is in b, which is at offset in the
// file, behind its first byte.
func laterBatch(offset int64, b []byte) bool {
	for i := 1; i+batchFrame <= len(b); i++ {
		if b[i+3] != 9 || b[i+8] != stepBatch || int64(binary.BigEndian.Uint64(b[i+9:])) != offset+int64(i) {
			continue
		}
		if string(appendBatch(nil, offset+int64(i))) == string(b[i:i+batchFrame]) {
			return true
		}
	}
	return false
}
