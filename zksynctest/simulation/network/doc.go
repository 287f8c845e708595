// Package network is a network in a bubble of testing/synctest for tests that
// must fail again when they have failed once.
//
// The network delivers one frame of ZooKeeper's protocol at a time, and only when
// everything in the bubble is blocked. So everything that a frame causes has
// happened before the next frame arrives. A seed decides which of the waiting
// frames arrives next. A dial waits for its turn like a frame. A fault strikes a
// frame that is chosen by its content or by its number.
package network
