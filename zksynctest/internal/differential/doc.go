// Package differential tests that the embedded server and a real one give the same
// answers to the same requests. It compares the answers field by field: reply
// headers, records, Stats, watch events in their order, and connections that close.
//
// A sequence of requests is a list of lines such as
//
//	0 create ~/a data=x flags=1
//	1 getData ~/a watch
//	0 multi [delete ~/a; create ~/b]
//	0 closeSession
//
// where the number says which of three clients sends it, and ~ stands for a znode
// that is the sequence's own. The scripts in scripts_*_test.go are written so, and a random
// sequence that fails is printed so: to keep it, paste it there.
//
//	ZKSYNC_DIFF_SEQUENCES=100000 ZKSYNC_DIFF_SEED=7 go test ./zksynctest/internal/differential
package differential
