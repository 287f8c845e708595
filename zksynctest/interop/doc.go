// Package interop has tests only: that a lock, a queue, a leader and a barrier
// are the same things to Go, to Java and to Python when they share a path.
//
// They drive Curator, the recipes that come with ZooKeeper, kazoo, and go-zookeeper's
// Lock, each in a process of its own, on a real ZooKeeper and on the embedded server.
// Java and Python read commands from their standard input; their programs are in
// testdata. Debian has all packages that the tests need:
//
//	apt-get install -y zookeeper libcurator-recipes-java python3-kazoo
//
// Without it tests are skipped, and say so; ZKSYNC_REQUIRE_REAL=1 makes that an
// error. docs/migrating.md summarizes the results.
package interop
