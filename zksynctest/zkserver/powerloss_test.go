package zkserver

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
)

var powerLosses = flag.Int("losses", 300, "how often TestPowerLoss loses power, with DataSync and without")

// powerWorkers is the number of workers. Each worker writes to its own znode, one write after the
// other, until the power fails.
const powerWorkers = 3

// powerRun is a server and the writes that it has acknowledged.
type powerRun struct {
	rng    *rand.Rand
	files  *powerless
	acked  [powerWorkers]atomic.Uint64 // the latest acknowledged number
	logged []string
}

func (r *powerRun) start(sync bool) (*Server, error) {
	return New(Config{DataFile: "/disk/data", DataSync: sync, files: r.files, Logf: func(format string, args ...any) {
		r.logged = append(r.logged, fmt.Sprintf(format, args...))
	}})
}

// work writes until a write fails. Some of the data is long, and some of the long data consists of
// zeros.
func (r *powerRun) work(s *Server) {
	var wg sync.WaitGroup
	for w := range powerWorkers {
		rng := rand.New(rand.NewPCG(r.rng.Uint64(), 1))
		wg.Go(func() {
			path := fmt.Sprintf("/w%d", w)
			for {
				n := r.acked[w].Load() + 1
				data := binary.BigEndian.AppendUint64(nil, n)
				if rng.IntN(3) == 0 {
					data = append(data, make([]byte, rng.IntN(3000))...)
				}
				var err error
				if _, ok := s.Get(path); ok {
					err = s.Set(path, data)
				} else {
					err = s.Create(path, data)
				}
				if err != nil {
					return
				}
				r.acked[w].Store(n)
				if rng.IntN(20) == 0 {
					s.journal.Renew() // the next flush replaces the file
				}
			}
		})
	}
	wg.Wait()
}

// check requires every acknowledged write, and forbids data that was never written.
func (r *powerRun) check(t *testing.T, seed int, s *Server, lossy bool) {
	t.Helper()
	for w := range powerWorkers {
		data, _ := s.Get(fmt.Sprintf("/w%d", w))
		got, acked := uint64(0), r.acked[w].Load()
		if len(data) >= 8 {
			got = binary.BigEndian.Uint64(data)
		}
		if got > acked+1 || got < acked && !lossy {
			t.Fatalf("seed %d: writer %d finds %d, and %d was acknowledged", seed, w, got, acked)
		}
		r.acked[w].Store(got)
	}
}

// With DataSync every acknowledged write survives a power loss of the machine, and the server
// starts again: at any operation on the file and its directory, with any subset of the unsynced
// sectors and names, and repeatedly on the same files. Without DataSync the server starts with an
// earlier state, or reports that the file is damaged. The lines to break are the calls of Sync and
// syncDir in journal.go and the call of tornWrite in load.
func TestPowerLoss(t *testing.T) {
	damaged, cut := 0, 0
	for seed := range *powerLosses {
		sync := seed%4 != 3
		r := &powerRun{rng: rand.New(rand.NewPCG(uint64(seed), 7)), files: newPowerless(uint64(seed))}
		for range 3 {
			r.files.cut(r.rng.IntN(60))
			s, err := r.start(sync)
			switch {
			case err == nil:
				r.check(t, seed, s, !sync)
				r.work(s)
				s.Close()
			case errors.Is(err, ErrCorrupt) && !sync:
				damaged++
			case !errors.Is(err, errPower):
				t.Fatalf("seed %d: %v", seed, err)
			}
			r.files = r.files.reboot()
		}
		s, err := r.start(sync)
		if err == nil {
			r.check(t, seed, s, !sync)
			s.Close()
		} else if sync || !errors.Is(err, ErrCorrupt) {
			t.Fatalf("seed %d: %v", seed, err)
		}
		cut += len(r.logged)
	}
	t.Logf("%d seeds; %d times a write was cut off, and %d times a file that was not synced was damaged", *powerLosses, cut, damaged)
	if cut == 0 && *powerLosses >= 100 {
		t.Error("no write was cut off")
	}
}
