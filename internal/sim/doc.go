// Package sim is a network in a bubble of testing/synctest that does as a seed
// says, for tests that must fail again when they have failed once.
//
// It carries one frame of ZooKeeper's protocol at a time, whichever the seed
// chooses of those that wait, and only when everything in the bubble has come to
// rest: so what a frame causes has been caused before the next one arrives. Dials
// wait for their turn like frames. Faults strike by a count of frames, not by luck.
package sim
