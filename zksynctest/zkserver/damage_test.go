package zkserver

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/journal"
)

var damages = flag.Int("damages", 2000, "how many damaged and cut files TestStormOfDamagedFiles starts a server on")

// history returns a data file and all its intermediate states, as the data of /n.
func history(t testing.TB) (file []byte, states map[string]bool) {
	t.Helper()
	files := newPowerless(1)
	s, err := New(Config{DataFile: "/disk/data", DataSync: true, files: files})
	if err != nil {
		t.Fatal(err)
	}
	states = map[string]bool{"0 ": true}
	for i := range 40 {
		data := append(fmt.Appendf(nil, "%d ", i), make([]byte, i*i%1300)...)
		if i == 0 {
			err = s.Create("/n", data)
		} else {
			err = s.Set("/n", data)
		}
		if err != nil {
			t.Fatal(err)
		}
		states[stateOf(s)] = true
		if i == 20 {
			s.journal.Renew()
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return files.present("/disk/data").b, states
}

// stateOf returns the zxid and the data of /n as text.
func stateOf(s *Server) string {
	data, _ := s.Get("/n")
	return fmt.Sprintf("%d %s", s.Zxid(), data)
}

// startOn starts a server on a file. A file that is refused must be unchanged, and a started server
// must have one of the states.
func startOn(t testing.TB, what string, file []byte, states map[string]bool) (started bool) {
	t.Helper()
	files := newPowerless(1)
	i := &inode{b: bytes.Clone(file), dirty: map[int]bool{}}
	files.put("/disk/data", i)
	s, err := New(Config{DataFile: "/disk/data", DataSync: true, files: files})
	switch {
	case err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrNewerFormat):
		t.Fatalf("%s: %v", what, err)
	case err != nil:
		if !bytes.Equal(i.b, file) {
			t.Fatalf("%s: the file was refused, and changed", what)
		}
		return false
	}
	if got := stateOf(s); !states[got] {
		t.Fatalf("%s: the server started with a state that never was: %.40q", what, got)
	}
	if err := s.Close(); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	return true
}

// harm returns a damaged copy of a file: bits, bytes and sectors are wrong, missing, doubled or
// exchanged, or the end is missing or too long.
func harm(rng *rand.Rand, whole []byte) ([]byte, string) {
	b := bytes.Clone(whole)
	sector := func() []byte {
		at := rng.IntN(len(b)) / journal.DiskSector * journal.DiskSector
		return b[at:min(at+journal.DiskSector, len(b))]
	}
	kind := rng.IntN(8)
	at := rng.IntN(len(b))
	switch kind {
	case 0:
		b[at] ^= 1 << rng.IntN(8)
	case 1:
		b = b[:at]
	case 2:
		clear(sector())
	case 3:
		copy(sector(), bytes.Clone(sector()))
	case 4:
		b = append(b[:at:at], whole[min(at+1+rng.IntN(600), len(b)):]...)
	case 5:
		b = append(b[:at:at], whole[max(at-rng.IntN(600), 0):]...)
	case 6:
		b = append(b, make([]byte, rng.IntN(2000))...)
	case 7:
		for i := range b[at:min(at+rng.IntN(600), len(b))] {
			b[at+i] = byte(rng.UintN(256))
		}
	}
	return b, fmt.Sprintf("kind %d at %d of %d", kind, at, len(whole))
}

// A server on a damaged or cut data file either reports the damage and leaves the file unchanged,
// or starts with an earlier state of the file. -damages sets the number of files. The line to break
// is the comparison of checksums in readDataFrame.
func TestStormOfDamagedFiles(t *testing.T) {
	whole, states := history(t)
	if !startOn(t, "whole", whole, states) {
		t.Fatal("the whole file was refused")
	}
	started := 0
	for seed := range *damages {
		b, what := harm(rand.New(rand.NewPCG(uint64(seed), 3)), whole)
		if startOn(t, fmt.Sprintf("seed %d, %s", seed, what), b, states) {
			started++
		}
	}
	t.Logf("%d files, %d of them good enough to start on", *damages, started)
}

// FuzzDataFile overwrites part of a data file with any bytes.
func FuzzDataFile(f *testing.F) {
	whole, states := history(f)
	states["0 "] = true
	f.Add(uint16(0), uint16(0), []byte{})
	f.Add(uint16(len(whole)-30), uint16(30), make([]byte, 30))
	f.Add(uint16(16), uint16(8), []byte{0, 0, 0, 9, 1, 2, 3, 4})
	f.Fuzz(func(t *testing.T, at, gone uint16, put []byte) {
		from := min(int(at), len(whole))
		to := min(from+int(gone), len(whole))
		b := append(append(bytes.Clone(whole[:from]), put...), whole[to:]...)
		startOn(t, "fuzz", b, states)
	})
}
