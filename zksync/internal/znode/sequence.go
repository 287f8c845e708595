package znode

import (
	"math"
	"strconv"
	"strings"
)

// ParseSequence returns the sequence number that follows the last mark in a name: ten
// digits or more, with a sign once the server's counter has wrapped. It reads the name
// from its end, since a long line has many names. So a mark must not end in a digit.
func ParseSequence(name, mark string) (int32, bool) {
	i := len(name)
	for i > 0 && '0' <= name[i-1] && name[i-1] <= '9' {
		i--
	}
	if strings.HasSuffix(name[:i], mark) {
		return ParseNumber(name[i:])
	}
	// The dash in front of the digits is a sign only if it does not belong to the mark.
	if i > 0 && name[i-1] == '-' && strings.HasSuffix(name[:i-1], mark) {
		return ParseNumber(name[i-1:])
	}
	return 0, false
}

// ParseNumber parses a sequence number.
func ParseNumber(digits string) (int32, bool) {
	if len(digits) < 10 || digits[0] == '+' {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	return int32(n), err == nil
}

// Countable reports whether a number tells the order of arrival. The server's counter
// stops at the greatest int32: every later znode gets that number or, under load, a
// negative one.
func Countable(seq int32) bool { return seq >= 0 && seq < math.MaxInt32 }

// Earlier compares sequence numbers across the wrap from 2147483647 to -2147483648.
// Two znodes of one directory are never half the numbers apart.
func Earlier(a, b int32) bool { return int32(uint32(a)-uint32(b)) < 0 }
