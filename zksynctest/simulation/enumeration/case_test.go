package enumeration_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-zksync/toolkit/zksynctest/simulation/network"
)

// A strike is one fault at one frame.
type strike struct {
	at    network.Address
	fault *fault
}

func (k strike) String() string { return k.at.String() + "/" + k.fault.name }

// A faultCase is one run of a scenario with its faults. The engine enumerates the frames of the run
// without faults.
type faultCase struct {
	setting
	strikes []strike
	leads   int // 1 + the client that is connected to the leader even if no fault requires it, or 0
}

// String returns the name of the case, which the flag -case accepts.
func (c faultCase) String() string {
	parts := []string{c.setting.String()}
	for _, k := range c.strikes {
		parts = append(parts, k.String())
	}
	return strings.Join(parts, "/")
}

// with returns the case with one more strike.
func (c faultCase) with(k strike) faultCase {
	return faultCase{setting: c.setting, strikes: append(slices.Clone(c.strikes), k)}
}

// leader returns the client that has to be connected to the leader, or -1.
func (c faultCase) leader() int {
	for _, k := range c.strikes {
		if k.fault.leads {
			return k.at.Client
		}
	}
	return c.leads - 1
}

// parseCase reads the name of a case.
func parseCase(name string) (c faultCase, err error) {
	parts := strings.Split(name, "/")
	if c.setting, err = parseSetting(parts[0]); err != nil {
		return c, fmt.Errorf("case %q: %w", name, err)
	}
	for parts = parts[1:]; len(parts) > 0; parts = parts[2:] {
		if len(parts) == 1 {
			return c, fmt.Errorf("case %q: %q has no fault", name, parts[0])
		}
		at, err := network.ParseAddress(parts[0])
		if err != nil {
			return c, fmt.Errorf("case %q: %w", name, err)
		}
		f := faultByName(parts[1])
		if f == nil {
			return c, fmt.Errorf("case %q: there is no fault %q", name, parts[1])
		}
		c = c.with(strike{at, f})
	}
	return c, nil
}

// The name of a case identifies the case.
func TestCaseNames(t *testing.T) {
	for _, want := range []string{"mutex-handover/1.1.up.4/break-before/1.2.down.1/expire", "mutex-handover@far/1.1.up.4/break-before/1.2.down.1/expire"} {
		c, err := parseCase(want)
		if err != nil || c.String() != want || len(c.strikes) != 2 {
			t.Errorf("parseCase(%q) = %v, %v", want, c, err)
		}
	}
	for _, name := range []string{"", "nothing", "mutex-handover@nothing", "mutex-handover@usual", "mutex-handover/1.1.up.4", "mutex-handover/1.1.up.4/nothing", "mutex-handover/1.1/expire"} {
		if c, err := parseCase(name); err == nil {
			t.Errorf("parseCase(%q) = %v", name, c)
		}
	}
}
