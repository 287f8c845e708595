// Package clients holds the tests of the embedded server with clients that are
// not of this module: go-zookeeper's own, the shell of Apache ZooKeeper, and kazoo. Each
// does the same on a real server, which shows that the test is right.
package clients
