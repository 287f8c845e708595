package zkserver_test

import "testing"

func BenchmarkFirstSession(b *testing.B) {
	for b.Loop() {
		firstSession(b)
	}
}
