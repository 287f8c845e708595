package network

import (
	"math/rand/v2"
	"time"
)

// A Schedule decides in which order frames and dials arrive. Only the goroutine in
// Net.Run calls its methods.
type Schedule interface {
	// choose returns the index of the step that comes next.
	choose(steps []step) int
	// latency is how long the step after that has to wait.
	latency() time.Duration
}

// A step is the arrival of a frame, or the success of a dial.
type step struct {
	since  time.Time // when it began to wait
	conn   *Conn     // on which the frame arrives; nil if the step is a dial
	dir    Direction // of the frame
	client *client   // that dials
}

// Random returns the Schedule that seed decides. Often the next step follows at the
// same instant, so that no timer fires in between.
func Random(seed uint64) Schedule { return random{rand.New(rand.NewPCG(seed, 0x6e6574))} }

type random struct{ rnd *rand.Rand }

func (r random) choose(steps []step) int { return r.rnd.IntN(len(steps)) }

func (r random) latency() time.Duration {
	if r.rnd.IntN(3) == 0 {
		return 0
	}
	return time.Duration(1 + r.rnd.IntN(400_000))
}

// Steady returns a Schedule in which the step comes next that has waited longest,
// and each step takes the time d.
func Steady(d time.Duration) Schedule { return steady(d) }

type steady time.Duration

func (s steady) choose(steps []step) (first int) {
	for i := range steps {
		if steps[i].since.Before(steps[first].since) {
			first = i
		}
	}
	return first
}

func (s steady) latency() time.Duration { return time.Duration(s) }
