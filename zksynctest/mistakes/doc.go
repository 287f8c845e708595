// Package mistakes tests what a user sees of misconfigurations and outages: the first
// error or log line, which must come within four seconds, and say the cause. The tests
// also produce the table in docs/mistakes.md:
//
//	go test ./zksynctest/mistakes -update
package mistakes
