package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"testing"
)

// A length in an answer costs no memory before its bytes arrive.
func TestALengthAloneCostsNoMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 100 {
		_, err := readAnswer(bytes.NewReader(binary.BigEndian.AppendUint32(nil, maxAnswer)), maxAnswer)
		if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("error %v, want the end of the input", err)
		}
	}
	runtime.ReadMemStats(&after)
	if n := (after.TotalAlloc - before.TotalAlloc) / 100; n > 4<<20 {
		t.Errorf("%d bytes for a frame of which nothing came", n)
	}
	for _, n := range []uint32{maxAnswer + 1, 1<<31 - 1, 1 << 31, 1<<32 - 1} {
		if _, err := readAnswer(bytes.NewReader(binary.BigEndian.AppendUint32(nil, n)), maxAnswer); !errors.Is(err, ErrMalformed) {
			t.Errorf("a frame of %d bytes: error %v, want it refused", n, err)
		}
	}
	big := bytes.Repeat([]byte("0123456789abcdef"), 200<<10)
	got, err := readAnswer(bytes.NewReader(framed(big)), maxAnswer)
	if err != nil || !bytes.Equal(got[4:], big) {
		t.Errorf("a frame of %d bytes came as %d, error %v", len(big), len(got)-4, err)
	}
}
