// Package mistakes tests the messages that a user sees of misconfigurations and
// outages: the first error or log line must come within four seconds, and state the
// cause. The tests also produce the table in docs/mistakes.md:
//
//	go test ./zksynctest/mistakes -update
package mistakes
