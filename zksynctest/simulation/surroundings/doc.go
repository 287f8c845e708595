// Package surroundings changes the servers of the simulation and of the enumeration: the set of
// operations that they know, the counters of their directories, and their quotas.
package surroundings
