// Package enumeration tries every fault at every frame of short scenarios.
//
// A scenario is a deterministic workload of one to three clients. The engine first
// runs a scenario without faults and records its frames. Then it runs one case for
// each frame and each fault that fits the frame, and for the scenarios of sessions,
// watches and hand-overs, or the scenarios that -scenario names, also for pairs of
// faults. A world is the set-up of a run: the servers' configuration, the options of the
// sessions, the distances, and the znodes that exist before the scenario. The name of a
// case in another world than the usual one has the world behind an @. Each case runs in a bubble of its own, on a new embedded ensemble and a new
// network. A case passes if every call had an outcome that the documentation allows,
// if nothing was left behind, and if everything could be acquired again.
//
//	go test ./zksynctest/simulation/enumeration -world usual -cases all
//	go test ./zksynctest/simulation/enumeration -world far,spent -cases 5000
//	go test ./zksynctest/simulation/enumeration -case mutex-handover/1.1.up.4/break-before
package enumeration
