package network_test

import (
	"errors"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/zksynctest/simulation/network"
)

// An address parses from the text that it prints, and from no other text.
func TestAddressText(t *testing.T) {
	want := network.Address{Client: 3, Conn: 2, Dir: network.Down, Index: 14}
	if got, err := network.ParseAddress(want.String()); got != want || err != nil {
		t.Errorf("ParseAddress(%q) = %v, %v", want, got, err)
	}
	for _, text := range []string{"", "3.2.down", "3.2.down.14x", "3.0.down.14", "3.2.sideways.14", "3.2.up.0", "x.2.up.1"} {
		if a, err := network.ParseAddress(text); err == nil {
			t.Errorf("ParseAddress(%q) = %v", text, a)
		}
	}
}

// steadily runs test with a network that delivers frames in the order in which they
// were sent, and records them.
func steadily(t *testing.T, test func(t *testing.T, n *network.Net, e *echo)) {
	bounds.Bubble(t, func(t *testing.T) {
		n := network.New(network.Steady(time.Millisecond), 2)
		go n.Run()
		defer n.Close()
		n.Record()
		test(t, n, &echo{})
	})
}

// The network records every frame once, in the order of delivery, also a frame that
// was held up.
func TestRecord(t *testing.T) {
	steadily(t, func(t *testing.T, n *network.Net, e *echo) {
		c := dial(t, n, 1, e)
		defer c.Close()
		n.Strike(network.Strike{At: &network.Address{Client: 1, Conn: 1, Dir: network.Up, Index: 2}, Do: network.Stall, For: time.Second})
		for _, text := range []string{"connect", "second request"} {
			c.Write(frame(text))
			if _, err := receive(c); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		for _, f := range n.Frames() {
			got = append(got, f.Address.String())
		}
		want := []string{"1.1.up.1", "1.1.down.1", "1.1.up.2", "1.1.down.2"}
		if !slices.Equal(got, want) {
			t.Errorf("recorded %q, want %q", got, want)
		}
		f := n.Frames()
		const op = 'n'<<24 | 'd'<<16 | ' '<<8 | 'r' // bytes 4 to 7 of the request
		if f[0].Op != network.OpConnect || f[1].Op != network.OpConnect || f[2].Op != op || f[3].Op != op || f[3].Answers != f[2].Address {
			t.Errorf("recorded %+v", f)
		}
		if took := f[2].At.Sub(f[1].At); took < time.Second {
			t.Errorf("the stalled frame had its turn after %v", took)
		}
	})
}

// A Strike that loses an answer loses no watch event, even if the event is the frame at its address.
func TestLoseHitsNoWatchEvent(t *testing.T) {
	steadily(t, func(t *testing.T, n *network.Net, e *echo) {
		c := dial(t, n, 0, e)
		defer c.Close()
		n.Strike(network.Strike{At: &network.Address{Conn: 1, Dir: network.Down, Index: 2}, Do: network.Lose, For: time.Second})
		for _, text := range []string{"connect", "\xff\xff\xff\xff an event", "another frame"} {
			c.Write(frame(text))
			if got, err := receive(c); got != text || err != nil {
				t.Errorf("received %q, %v, want %q", got, err, text)
			}
		}
	})
}

// A Strike with an address hits that frame and no other.
func TestStrikeAtAnAddress(t *testing.T) {
	for name, test := range map[string]struct {
		at      network.Address
		arrives []string
		echoed  int
	}{
		"request": {network.Address{Client: 0, Conn: 1, Dir: network.Up, Index: 2}, []string{"one"}, 1},
		"answer":  {network.Address{Client: 0, Conn: 1, Dir: network.Down, Index: 2}, []string{"one", "two"}, 1},
		"another": {network.Address{Client: 1, Conn: 1, Dir: network.Up, Index: 2}, []string{"one", "two", "three"}, 3},
		"later":   {network.Address{Client: 0, Conn: 2, Dir: network.Up, Index: 2}, []string{"one", "two", "three"}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			steadily(t, func(t *testing.T, n *network.Net, e *echo) {
				c := dial(t, n, 0, e)
				defer c.Close()
				var hit network.Frame
				n.Strike(network.Strike{At: &test.at, Do: network.Reset, Then: func(f network.Frame) { hit = f }})
				echoed := 0
				for _, text := range []string{"one", "two", "three"} {
					c.Write(frame(text))
					if _, err := receive(c); err == nil {
						echoed++
					} else if !errors.Is(err, syscall.ECONNRESET) {
						t.Error(err)
					}
				}
				if got := e.all(); echoed != test.echoed || !slices.Equal(got, test.arrives) {
					t.Errorf("%q arrived and %d answers came back, want %q and %d", got, echoed, test.arrives, test.echoed)
				}
				if struck := hit.Address == test.at; struck != (test.echoed < 3) {
					t.Errorf("Then was called for %v", hit.Address)
				}
			})
		})
	}
}
