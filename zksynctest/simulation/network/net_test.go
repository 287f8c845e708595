package network_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/zksynctest/simulation/network"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// An echo is a server that sends back every frame, and records it.
type echo struct {
	mu  sync.Mutex
	got []string
}

func (e *echo) dial(context.Context, string) (net.Conn, error) {
	client, server := net.Pipe()
	go func() {
		defer server.Close()
		for {
			text, err := receive(server)
			if err != nil {
				return
			}
			e.mu.Lock()
			e.got = append(e.got, text)
			e.mu.Unlock()
			if _, err := server.Write(frame(text)); err != nil {
				return
			}
		}
	}()
	return client, nil
}

func (e *echo) all() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.got)
}

func frame(text string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
}

func receive(r io.Reader) (string, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return "", err
	}
	b := make([]byte, binary.BigEndian.Uint32(head[:]))
	_, err := io.ReadFull(r, b)
	return string(b), err
}

// bubble runs test with a network of so many clients.
func bubble(t *testing.T, seed uint64, clients int, test func(t *testing.T, n *network.Net, e *echo)) {
	bounds.Bubble(t, func(t *testing.T) {
		n := network.New(network.Random(seed), clients)
		go n.Run()
		defer n.Close()
		test(t, n, &echo{})
	})
}

func dial(t *testing.T, n *network.Net, client int, e *echo) net.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := n.Dialer(client, e.dial)(ctx, "tcp", "anywhere")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Frames arrive whole and in order, even if they were written in pieces.
func TestCarriesFramesInOrder(t *testing.T) {
	bubble(t, 1, 1, func(t *testing.T, n *network.Net, e *echo) {
		c := dial(t, n, 0, e)
		defer c.Close()
		all := slices.Concat(frame("one"), frame("two"), frame("three"))
		c.Write(all[:9]) // frames arrive whole, however they were written
		time.Sleep(time.Second)
		if got := e.all(); !slices.Equal(got, []string{"one"}) {
			t.Errorf("of one frame and a half %q arrived", got)
		}
		c.Write(all[9:])
		for _, want := range []string{"one", "two", "three"} {
			if got, err := receive(c); got != want || err != nil {
				t.Errorf("received %q, %v, want %q", got, err, want)
			}
		}
	})
}

// run has three clients send at once and tells in which order it arrives.
func run(t *testing.T, seed uint64) (order []string, hash uint64) {
	bubble(t, seed, 3, func(t *testing.T, n *network.Net, e *echo) {
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() {
				c := dial(t, n, i, e)
				defer c.Close()
				for _, text := range []string{"a", "b", "c", "d"} {
					c.Write(frame(string(rune('0'+i)) + text))
				}
				for range 4 {
					receive(c)
				}
			})
		}
		wg.Wait()
		order = e.all()
		hash, _ = n.Fingerprint()
	})
	return order, hash
}

// The seed alone decides the order in which frames arrive.
func TestSeedDecides(t *testing.T) {
	orders := map[string]bool{}
	for seed := range uint64(10) {
		order, hash := run(t, seed)
		for range 5 {
			again, same := run(t, seed)
			if !slices.Equal(order, again) || hash != same {
				t.Fatalf("seed %d: first %q, %x, and then %q, %x", seed, order, hash, again, same)
			}
		}
		orders[slices.Concat(order)[0]+order[5]+order[9]] = true
	}
	if len(orders) < 3 {
		t.Errorf("ten seeds have come to %d orders only", len(orders))
	}
}

// A Strike breaks, delays or swallows exactly the frame that it names.
func TestStrikes(t *testing.T) {
	for name, test := range map[string]struct {
		strike  network.Strike
		arrives []string // at the server, of one, two and three
		echoed  int      // before the connection ends
		ends    bool
	}{
		"reset":            {network.Strike{Nth: 2, Do: network.Reset}, []string{"one"}, 1, true},
		"reset after":      {network.Strike{Nth: 2, Do: network.ResetAfter}, []string{"one", "two"}, 1, true},
		"reset the answer": {network.Strike{Nth: 2, Dir: network.Down, Do: network.Reset}, []string{"one", "two", "three"}, 1, true},
		"lose an answer":   {network.Strike{Nth: 2, Dir: network.Down, Do: network.Lose, For: 5 * time.Second}, []string{"one", "two", "three"}, 2, true},
		"stall":            {network.Strike{Nth: 2, Do: network.Stall, For: 5 * time.Second}, []string{"one", "two", "three"}, 3, false},
		"by what it says":  {network.Strike{Has: "hre", Do: network.Reset}, []string{"one", "two"}, 2, true},
		"by another word":  {network.Strike{Has: "four", Do: network.Reset}, []string{"one", "two", "three"}, 3, false},
		"by two words":     {network.Strike{Has: "o", And: "w", Do: network.Reset}, []string{"one"}, 1, true},
		"without a word":   {network.Strike{Lacks: "o", Do: network.Reset}, []string{"one", "two"}, 2, true},
		"answer to a word": {network.Strike{Dir: network.Down, Has: "hre", Do: network.Reset}, []string{"one", "two", "three"}, 2, true},
		"no such answer":   {network.Strike{Dir: network.Down, Has: "four", Do: network.Reset}, []string{"one", "two", "three"}, 3, false},
		"pass":             {network.Strike{Nth: 2, Do: network.Pass}, []string{"one", "two", "three"}, 3, false},
		"of anyone":        {network.Strike{Client: network.Anyone, Nth: 3, Do: network.Reset}, []string{"one", "two"}, 2, true},
		"of another":       {network.Strike{Client: 1, Do: network.Reset}, []string{"one", "two", "three"}, 3, false},
		"swallow":          {network.Strike{Nth: 2, Do: network.Swallow, For: 5 * time.Second}, []string{"one"}, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 1, 1, func(t *testing.T, n *network.Net, e *echo) {
				c := dial(t, n, 0, e)
				defer c.Close()
				n.Strike(test.strike)
				begun := time.Now()
				echoed, ended := 0, false
				c.SetReadDeadline(time.Now().Add(time.Minute))
				for _, text := range []string{"one", "two", "three"} {
					c.Write(frame(text))
					time.Sleep(10 * time.Millisecond) // so that the answers have come but for the fault
				}
				for range 3 {
					_, err := receive(c)
					if err != nil {
						ended = errors.Is(err, syscall.ECONNRESET)
						break
					}
					echoed++
				}
				if got := e.all(); test.strike.Dir == network.Up && !slices.Equal(got, test.arrives) {
					t.Errorf("%q arrived, want %q", got, test.arrives)
				}
				if echoed != test.echoed || ended != test.ends {
					t.Errorf("%d answers and then reset: %v, want %d and %v", echoed, ended, test.echoed, test.ends)
				}
				if took := time.Since(begun); test.strike.Do == network.Stall && took < 5*time.Second {
					t.Errorf("stalled for %v", took)
				}
			})
		})
	}
}

// The function of a Strike is called before its frame goes on, and another Strike may hit the same frame.
func TestStrikesTell(t *testing.T) {
	const opOfSecond = 'n'<<24 | 'd'<<16 | 'l'<<8 | 'y' // as the network sees it
	for name, test := range map[string]struct {
		dir  network.Direction
		want []string // the frames that had arrived at the server then
	}{
		"request": {network.Up, []string{"first"}},
		"answer":  {network.Down, []string{"first", "secondly"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 1, 1, func(t *testing.T, n *network.Net, e *echo) {
				c := dial(t, n, 0, e)
				defer c.Close()
				var arrived []string
				n.Strike(network.Strike{Dir: test.dir, Has: "second", Do: network.Reset})
				n.Strike(network.Strike{Dir: test.dir, Op: opOfSecond, Do: network.Pass, Then: func(network.Frame) { arrived = e.all() }})
				n.Strike(network.Strike{Dir: test.dir, Has: "second", Do: network.Pass, Then: func(network.Frame) { t.Error("was not disarmed") }})()
				for _, text := range []string{"first", "secondly"} {
					c.Write(frame(text))
				}
				if got, err := receive(c); got != "first" || err != nil {
					t.Errorf("received %q, %v", got, err)
				}
				if got, err := receive(c); !errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("received %q, %v where the connection is reset", got, err)
				}
				if !slices.Equal(arrived, test.want) {
					t.Errorf("%q had arrived, want %q", arrived, test.want)
				}
			})
		})
	}
}

// In a partition no frame passes and no dial succeeds until it ends.
func TestPartition(t *testing.T) {
	bubble(t, 1, 2, func(t *testing.T, n *network.Net, e *echo) {
		c := dial(t, n, 0, e)
		n.Partition(0, 10*time.Second)
		c.Write(frame("lost"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := n.Dialer(0, e.dial)(ctx, "tcp", "anywhere"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("dialled through a partition: %v", err)
		}
		begun := time.Now()
		dial(t, n, 1, e).Close()
		if took := time.Since(begun); took > time.Second {
			t.Errorf("the others were kept waiting for %v", took)
		}
		if _, err := receive(c); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%v at the end of the partition, want a reset", err)
		}
		if took := time.Since(begun); took < 8*time.Second {
			t.Errorf("it ended after %v", took)
		}
		dial(t, n, 0, e).Close()
		if got := e.all(); len(got) > 0 {
			t.Errorf("%q got through", got)
		}
	})
}

// A stranded client keeps its connection and reaches no server by a new one.
func TestStrand(t *testing.T) {
	bubble(t, 1, 1, func(t *testing.T, n *network.Net, e *echo) {
		c := dial(t, n, 0, e)
		defer c.Close()
		n.Strand(0, 10*time.Second)
		begun := time.Now()
		c.Write(frame("through"))
		if got, err := receive(c); got != "through" || err != nil || time.Since(begun) > time.Second {
			t.Errorf("%q, %v after %v", got, err, time.Since(begun))
		}
		dial(t, n, 0, e).Close()
		if took := time.Since(begun); took < 10*time.Second {
			t.Errorf("dialled after %v", took)
		}
	})
}

// A hold delays the frames of a client and loses none.
func TestHold(t *testing.T) {
	bubble(t, 1, 1, func(t *testing.T, n *network.Net, e *echo) {
		c := dial(t, n, 0, e)
		defer c.Close()
		n.Hold(0, 10*time.Second)
		begun := time.Now()
		c.Write(frame("late"))
		if got, err := receive(c); got != "late" || err != nil || time.Since(begun) < 10*time.Second {
			t.Errorf("%q, %v after %v", got, err, time.Since(begun))
		}
	})
}

// A dial that was given up leaves no connection behind.
func TestDialGivenUp(t *testing.T) {
	bubble(t, 1, 1, func(t *testing.T, n *network.Net, e *echo) {
		n.Hold(0, time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := n.Dialer(0, e.dial)(ctx, "tcp", "anywhere"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want the end of ctx", err)
		}
		time.Sleep(2 * time.Minute)
	})
}
