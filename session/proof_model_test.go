package session

import (
	"container/heap"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
)

var proofRuns = flag.Int("proofruns", bounds.Size(500, 4000), "random runs of TestProofAgainstAModelOfTheServers")

// A leaderModel models the parts of ZooKeeper's leader and one follower that affect the life of one session:
// SessionTrackerImpl, LearnerHandler, LearnerSessionTracker and Learner.ping of ZooKeeper 3.8.0.
type leaderModel struct {
	rnd     *rand.Rand
	now     time.Duration
	events  eventQueue
	seq     int
	timeout time.Duration
	tick    time.Duration

	touched  bool          // in the follower's table
	expiry   time.Duration // as the leader counts it
	ended    bool
	endedAt  time.Duration
	pausedTo time.Duration // the leader does not run earlier
	sweepAt  time.Duration // the tracker does not run earlier
	queue    []func()      // messages that arrived at the leader while it was paused
	cut      bool          // between leader and follower
	deposed  bool          // the leader answers everything except transactions, and does not know that it is deposed
	loseOne  bool          // the follower's next touch races with a report and is lost
	lostAt   time.Duration // the time of that touch, 0 before
	cutLater bool          // the follower is cut off right behind the next commit that is a report's time later
	log      []string
}

type modelEvent struct {
	at  time.Duration
	seq int
	do  func()
}

type eventQueue []modelEvent

func (q eventQueue) Len() int { return len(q) }
func (q eventQueue) Less(i, j int) bool {
	if q[i].at != q[j].at {
		return q[i].at < q[j].at
	}
	return q[i].seq < q[j].seq
}
func (q eventQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *eventQueue) Push(x any)   { *q = append(*q, x.(modelEvent)) }
func (q *eventQueue) Pop() any {
	old := *q
	e := old[len(old)-1]
	*q = old[:len(old)-1]
	return e
}

func (m *leaderModel) at(t time.Duration, do func()) {
	m.seq++
	heap.Push(&m.events, modelEvent{max(t, m.now), m.seq, do})
}

func (m *leaderModel) note(format string, args ...any) {
	m.log = append(m.log, fmt.Sprintf("%6v  ", m.now)+fmt.Sprintf(format, args...))
}

func (m *leaderModel) touch() {
	if !m.ended {
		m.expiry = m.now + m.timeout
	}
}

// toLeader delivers a message over the ordered link from the follower.
func (m *leaderModel) toLeader(do func()) {
	m.at(m.now, func() {
		if m.cut {
			return
		}
		if m.now < m.pausedTo {
			m.queue = append(m.queue, do)
			return
		}
		do()
	})
}

// ping runs every half tick on the leader. The follower answers with its table.
func (m *leaderModel) ping() {
	if m.now < m.pausedTo {
		m.at(m.pausedTo, m.ping) // the leader was paused, and runs now
		return
	}
	m.at(m.now+m.tick/2, m.ping)
	if m.cut {
		return
	}
	m.at(m.now+m.delay(), func() {
		if m.touched && !m.cut {
			m.touched = false
			m.toLeader(m.touch)
		}
	})
}

// track runs the leader's session tracker.
func (m *leaderModel) track() {
	m.at(m.now+m.timeout/200, m.track)
	if m.now < m.pausedTo || m.now < m.sweepAt || m.ended || m.deposed {
		return
	}
	if m.now >= m.expiry {
		m.ended, m.endedAt = true, m.now
		m.note("the leader ends the session")
	}
}

// delay returns the delay of a ping to the follower.
func (m *leaderModel) delay() time.Duration {
	return time.Duration(m.rnd.Int64N(int64(m.timeout / 100)))
}

func (m *leaderModel) pause(d time.Duration) {
	m.note("the leader is paused for %v", d)
	m.pausedTo = m.now + d
	// The tracker may run before or after the leader handles the messages of the pause.
	m.sweepAt = m.pausedTo
	if m.rnd.IntN(2) == 0 {
		m.sweepAt += time.Duration(m.rnd.Int64N(int64(m.timeout / 5)))
	}
	m.at(m.pausedTo, func() {
		m.note("the leader goes on")
		// Or the tracker has picked the session already, and no message of the pause saves it.
		if !m.ended && !m.deposed && m.now >= m.expiry && m.rnd.IntN(3) == 0 {
			m.note("the leader picks the session")
			m.at(m.now+time.Duration(m.rnd.Int64N(int64(m.timeout/5))), func() {
				if !m.ended {
					m.ended, m.endedAt = true, m.now
					m.note("the leader ends the session that it picked")
				}
			})
		}
		queue := m.queue
		m.queue = nil
		for _, do := range queue {
			do()
		}
	})
}

// depose makes another leader start after a while. That leader gives the session its full timeout from its start, and
// receives nothing of the follower's touches.
func (m *leaderModel) depose(after time.Duration) {
	m.note("the leader is deposed, the next one starts in %v", after)
	m.deposed = true
	m.at(m.now+after+m.timeout, func() {
		if !m.ended {
			m.ended, m.endedAt = true, m.now
			m.note("the new leader ends the session")
		}
	})
}

// No leader ends a session before the Deadline of its holder, or while the proof allows a grant, for any requests of
// a client at any time.
func TestProofAgainstAModelOfTheServers(t *testing.T) {
	runs := *proofRuns
	grants, losses := 0, 0
	for seed := range uint64(runs) {
		g, l, bad := proofRun(seed)
		grants, losses = grants+g, losses+l
		if bad != "" {
			t.Fatalf("seed %d: %s", seed, bad)
		}
	}
	t.Logf("%d runs, %d grants, the leader ended %d sessions", runs, grants, losses)
	if grants < runs/2 || losses < runs/4 {
		t.Errorf("%d grants and %d ended sessions in %d runs: the model is too tame", grants, losses, runs)
	}
}

func proofRun(seed uint64) (grants, losses int, bad string) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	const T = 1000 * time.Millisecond
	m := &leaderModel{rnd: rnd, timeout: T, tick: T/20 + time.Duration(rnd.Int64N(int64(T/2-T/20)))}
	m.expiry = T
	base := time.Unix(1e9, 0)
	slow := time.Duration(rnd.Int64N(4)) // the client's clock, in percent
	clock := func() time.Time { return base.Add(m.now * (100 - slow) / 100) }
	p := &proof{}
	r := p.connect(clock(), T)
	m.at(time.Duration(rnd.Int64N(int64(m.tick/2))), m.ping)
	m.at(0, m.track)

	held := false
	blocked := false // answers arrive in order: a request that the leader does not answer delays the rest
	latency := time.Duration(rnd.Int64N(int64(T / []time.Duration{4, 20, 100}[rnd.IntN(3)])))
	connection := 0
	send := func(kind evidence) {
		sent, on, conn := clock(), r, connection
		answer := func() {
			m.at(m.now+latency/2, func() {
				if conn == connection {
					p.answer(on, kind, sent, clock(), held)
				}
			})
		}
		m.at(m.now+latency/2, func() {
			if m.loseOne {
				m.loseOne, m.lostAt = false, m.now
			} else {
				m.touched = true
			}
			if kind == proofContact {
				if !blocked {
					answer()
				}
				return
			}
			if m.cut {
				blocked = true
			}
			m.toLeader(func() {
				if kind == proofCommit && m.deposed {
					blocked = true
				}
				if kind == proofCommit && m.ended || blocked {
					return
				}
				answer()
				// The lease assumes that no cut follows a stall before the follower's next report.
				afterStall := m.pausedTo > 0 && m.lostAt < m.pausedTo+m.tick
				if m.cutLater && kind == proofCommit && m.lostAt > 0 && m.now > m.lostAt+T/reportFraction && !afterStall && !m.cut {
					m.cut = true
					m.note("cut behind a commit, after the touch of %v was lost", m.lostAt)
				}
			})
		})
	}
	reconnect := func() {
		sent := clock()
		connection++
		conn := connection
		m.at(m.now+latency/2, func() {
			m.toLeader(func() {
				if m.ended && !m.deposed {
					return // the session has expired, and the client learns it
				}
				m.touch() // revalidation
				m.at(m.now+latency/2, func() {
					if conn == connection {
						r, blocked = p.connect(sent, T), false
					}
				})
			})
		})
	}
	var client func()
	pace := []time.Duration{T / idleFraction, T / 12, T / idleFraction, T / 5}[rnd.IntN(4)]
	breaks := []int{40, 40, 5}[rnd.IntN(3)]
	client = func() {
		if rnd.IntN(10) == 0 {
			pace = []time.Duration{T / idleFraction, T / 12, T / idleFraction, T / 24}[rnd.IntN(4)]
		}
		m.at(m.now+pace, client)
		switch {
		case m.cutLater && m.lostAt > 0 && !m.cut:
			send(proofCommit) // it relies on the contact whose touch was lost, if that is the newest one
		case rnd.IntN(breaks) == 0:
			reconnect()
		case pace == T/idleFraction && rnd.IntN(4) > 0:
			send(proofLeader)
		case rnd.IntN(3) == 0:
			send(proofCommit)
		default:
			send(proofContact)
		}
	}
	m.at(0, client)
	var decide func()
	decide = func() {
		m.at(m.now+time.Duration(rnd.Int64N(int64(T/10))), decide)
		if held && !clock().Before(p.deadline) {
			held = false // the context has ended
		}
		if !held && rnd.IntN(3) == 0 && p.grantable(clock()) {
			held = true
			grants++
			if m.ended {
				bad = "granted after the leader has ended the session"
			}
		} else if held && rnd.IntN(8) == 0 {
			held = false
		}
	}
	m.at(0, decide)
	pauseAt := -2 * T
	switch rnd.IntN(4) {
	case 3:
		m.at(time.Duration(rnd.Int64N(int64(5*T))), func() { m.depose(time.Duration(rnd.Int64N(int64(T)))) })
	case 0:
		m.at(time.Duration(rnd.Int64N(int64(5*T))), func() { m.cut = true; m.note("cut") })
	case 1:
		pauseAt = time.Duration(rnd.Int64N(int64(4 * T)))
		m.at(pauseAt, func() { m.pause(time.Duration(rnd.Int64N(int64(2 * T)))) })
	default:
		pauseAt = time.Duration(rnd.Int64N(int64(3 * T)))
		m.at(pauseAt, func() { m.pause(time.Duration(rnd.Int64N(int64(2 * T)))) })
		m.at(6*T+time.Duration(rnd.Int64N(int64(2*T))), func() { m.cut = true; m.note("cut") })
	}
	// The lease assumes that no touch is lost in the report right before a pause.
	if lose := time.Duration(rnd.Int64N(int64(5 * T))); rnd.IntN(4) == 0 && (lose < pauseAt-2*T || lose > pauseAt) {
		m.at(lose, func() { m.loseOne = true })
		m.cutLater = rnd.IntN(2) == 0
	}
	for len(m.events) > 0 && m.now < 12*T && bad == "" {
		ev := heap.Pop(&m.events).(modelEvent)
		m.now = ev.at
		was := m.ended
		ev.do()
		if m.ended && !was {
			losses++
			switch left := p.deadline.Sub(clock()); {
			case held && left > 0:
				bad = fmt.Sprintf("the leader ended the session %v before the holder's deadline", left)
			case !held && p.grantable(clock()):
				bad = fmt.Sprintf("the leader ended the session while a grant was possible, %v before the deadline", left)
			}
		}
	}
	if bad != "" {
		for _, l := range m.log {
			bad += "\n" + l
		}
		bad += fmt.Sprintf("\ntick %v, latency %v, now %v", m.tick, latency, m.now)
	}
	return grants, losses, bad
}
