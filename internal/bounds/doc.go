// Package bounds keeps tests within bounds: Bubble bounds the time that a test in a
// bubble may take, Size makes tests small in a plain go test, and Long keeps tests that take
// long in real time out of a plain go test.
package bounds
