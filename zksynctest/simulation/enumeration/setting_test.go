package enumeration_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A setting is a scenario in a world.
type setting struct {
	scenario *scenario
	world    *world
}

// String returns the name of the setting: only other worlds than the usual one are named.
func (s setting) String() string {
	if s.world == usual {
		return s.scenario.name
	}
	return s.scenario.name + "@" + s.world.name
}

// servers returns the configuration of the servers.
func (s setting) servers() zkserver.Config {
	cfg := zkserver.Config{TickTime: cmp.Or(s.scenario.tick, tick), ElectionTime: tick / 10, EnforceQuota: true}
	if s.world.server != nil {
		s.world.server(&cfg)
	}
	return cfg
}

// farClient returns the client that is far away if the world has one.
func (s setting) farClient() int {
	if s.world.first {
		return 0
	}
	return s.scenario.clients - 1
}

// layout returns the layout of the primitives.
func (s *stage) layout() zksync.LayoutOption { return zksync.WithLayout(s.of.world.layout) }

// parseSetting reads the name of a setting.
func parseSetting(name string) (setting, error) {
	of, in, other := strings.Cut(name, "@")
	i := slices.IndexFunc(scenarios, func(s *scenario) bool { return s.name == of })
	if i < 0 {
		return setting{}, fmt.Errorf("there is no scenario %q", of)
	}
	if !other {
		return setting{scenarios[i], usual}, nil
	}
	j := slices.IndexFunc(worlds, func(w *world) bool { return w.name == in && w != usual })
	if j < 0 {
		return setting{}, fmt.Errorf("there is no other world %q", in)
	}
	if !worlds[j].suits(scenarios[i]) {
		return setting{}, fmt.Errorf("the scenario %q has no sense in the world %q", of, in)
	}
	return setting{scenarios[i], worlds[j]}, nil
}

// settings returns the settings that the flags choose. Without -world, these are all scenarios in the
// usual world, and then each scenario in one of the other worlds.
func settings(t *testing.T) (all []setting) {
	some := chosen(t, "scenario", *scenarioFlag, scenarios, func(s *scenario) string { return s.name })
	in := []*world{usual}
	if *worldFlag == "all" {
		in = worlds
	} else if *worldFlag != "" {
		in = chosen(t, "world", *worldFlag, worlds, func(w *world) string { return w.name })
	}
	for _, w := range in {
		for _, s := range some {
			if w.suits(s) {
				all = append(all, setting{s, w})
			}
		}
	}
	if *worldFlag != "" {
		return all
	}
	others := worlds[1:]
	for _, s := range some {
		i := slices.Index(scenarios, s)
		w := others[(i+int(*sampleFlag%uint64(len(others))))%len(others)]
		if w.suits(s) {
			all = append(all, setting{s, w})
		}
	}
	return all
}

// scenarios returns the scenarios of the engine's settings.
func (e *engine) scenarios() (all []*scenario) {
	for _, s := range e.settings {
		if !slices.Contains(all, s.scenario) {
			all = append(all, s.scenario)
		}
	}
	return all
}

// worlds returns the worlds of the engine's settings.
func (e *engine) worlds() (all []*world) {
	for _, s := range e.settings {
		if !slices.Contains(all, s.world) {
			all = append(all, s.world)
		}
	}
	return all
}
