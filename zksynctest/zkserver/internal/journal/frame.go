package journal

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// The data begin with dataMagic, the version of the format and a checksum
// of both, and goes on in frames: the length, a checksum of the length, the steps,
// and a checksum of the steps. The first frames are a snapshot, which the last of
// them says is complete; each later frame has the changes of
// one transaction or of several. A frame that ends with the file was being written when the
// process ended; that its length has a checksum tells it from damage.
const (
	dataMagic = "zkserver"
	// dataFormat is the version that is written. Version 1 has neither batches nor the passwords of
	// sessions, and is read.
	dataFormat = 2
	dataHeader = len(dataMagic) + 8
	frameExtra = 12
	// snapshotFrame is about how long the frames of a snapshot are.
	snapshotFrame = 64 << 10
)

// maxDataFrame is how many bytes of steps a frame can have. Tests reduce it.
var maxDataFrame = 1 << 30

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

func appendDataHeader(b []byte) []byte {
	start := len(b)
	b = append(b, dataMagic...)
	b = binary.BigEndian.AppendUint32(b, dataFormat)
	return binary.BigEndian.AppendUint32(b, checksum(b[start:]))
}

// beginDataFrame leaves room for the head of a frame, which endDataFrame fills in.
func beginDataFrame(b []byte) []byte { return append(b, 0, 0, 0, 0, 0, 0, 0, 0) }

func endDataFrame(b []byte, start int) []byte {
	steps := b[start+8:]
	binary.BigEndian.PutUint32(b[start:], uint32(len(steps)))
	binary.BigEndian.PutUint32(b[start+4:], checksum(b[start:start+4]))
	return binary.BigEndian.AppendUint32(b, checksum(steps))
}

// loaded is the result of load.
type loaded struct {
	*State
	version  int
	good     int64 // how many bytes make the state
	snapshot int64 // how many of those are the snapshot
	torn     bool  // there is a part of a frame behind them
}

// loadSnapshot reads a whole snapshot.
func ReadSnapshot(r io.Reader) (*State, error) {
	l, err := load(r)
	if err != nil {
		return nil, err
	}
	if l.torn {
		return nil, fmt.Errorf("%w: the end of the data is missing", ErrCorrupt)
	}
	return l.State, nil
}

// load reads a snapshot and the changes behind it.
func load(r io.Reader) (*loaded, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	var head [dataHeader]byte
	if n, err := io.ReadFull(in, head[:]); err != nil {
		if !ended(err) {
			return nil, err
		}
		return nil, fmt.Errorf("%w: %d bytes are too few", ErrCorrupt, n)
	}
	version, err := checkDataHeader(head)
	if err != nil {
		return nil, err
	}
	l := &loaded{State: NewState(), version: version, good: int64(dataHeader)}
	var steps []byte
	for {
		var err error
		steps, err = readDataFrame(in, steps)
		switch {
		case err == io.EOF && l.complete:
			return l, nil
		case err == io.ErrUnexpectedEOF && l.complete:
			l.torn = true
			return l, nil
		case err == io.EOF || err == io.ErrUnexpectedEOF:
			err = fmt.Errorf("%w: the data ends within the snapshot", ErrCorrupt)
		case err == nil:
			err = l.Apply(steps)
		}
		// Files of version 1 do not mark the writes, so that damage cannot be told from a
		// write that was cut short.
		if damage := (*damagedFrame)(nil); errors.As(err, &damage) && l.complete && l.version >= 2 {
			rest, more := io.ReadAll(in)
			if more != nil {
				return nil, more
			}
			if tornWrite(l.good, damage.seen, rest) {
				l.torn = true
				return l, nil
			}
		}
		if errors.Is(err, ErrCorrupt) {
			return nil, fmt.Errorf("%w, after the first %d bytes", err, l.good)
		}
		if err != nil {
			return nil, err
		}
		l.good += int64(len(steps) + frameExtra)
		if l.complete && l.snapshot == 0 {
			l.snapshot = l.good
		}
	}
}

func checkDataHeader(head [dataHeader]byte) (version int, err error) {
	body, sum := head[:dataHeader-4], binary.BigEndian.Uint32(head[dataHeader-4:])
	if string(body[:len(dataMagic)]) != dataMagic || checksum(body) != sum {
		return 0, fmt.Errorf("%w: the header is missing", ErrCorrupt)
	}
	v := binary.BigEndian.Uint32(body[len(dataMagic):])
	if v < 1 || v > dataFormat {
		return 0, fmt.Errorf("%w: format %d, this version reads formats up to %d", ErrNewerFormat, v, dataFormat)
	}
	return int(v), nil
}

// readDataFrame returns the steps of the next frame, io.EOF at the end, and
// io.ErrUnexpectedEOF if the data end within the frame.
func readDataFrame(in *bufio.Reader, room []byte) ([]byte, error) {
	var head [8]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if checksum(head[:4]) != binary.BigEndian.Uint32(head[4:]) || int64(n) > int64(maxDataFrame) {
		return nil, &damagedFrame{"the length of a frame is damaged", head[:]}
	}
	// The length is believed only as far as bytes come in.
	b, want := room[:0], int(n)+4
	for len(b) < want {
		step := min(want-len(b), max(snapshotFrame, len(b)))
		start := len(b)
		b = append(b, make([]byte, step)...)
		if _, err := io.ReadFull(in, b[start:]); err != nil {
			if ended(err) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	if steps := b[:n]; checksum(steps) != binary.BigEndian.Uint32(b[n:]) {
		return nil, &damagedFrame{"a frame is damaged", append(head[:], b...)}
	}
	return b[:n], nil
}

func ended(err error) bool { return err == io.EOF || err == io.ErrUnexpectedEOF }
