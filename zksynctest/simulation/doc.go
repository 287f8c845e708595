// Package simulation runs zksync under faults inside bubbles of testing/synctest.
//
// TestSimulation draws a workload and a schedule of faults from each seed, and
// compares what happened with models. Package network is the network that both
// the simulation and the enumeration run on, and package planted puts known bugs
// into the code and tells what finds them. docs/testing.md says how to run each
// of them and how to follow up a failure.
package simulation
