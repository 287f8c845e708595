//go:build !linux

package session

func newClock() clock { return wallDrift() }
