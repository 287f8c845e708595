// Package simulation runs zksync under faults inside bubbles of testing/synctest.
//
// TestSimulation draws a workload and a schedule of faults from each seed, and
// compares the history of the run with models. Package network is the network that
// both the simulation and the enumeration run on. Package planted puts known bugs
// into the code and names the test that finds each. docs/testing.md says how to run
// each package and how to follow up a failure.
package simulation
