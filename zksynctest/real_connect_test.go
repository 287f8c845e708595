package zksynctest

import (
	"testing"
	"time"

	"github.com/go-zksync/toolkit/session"
)

// Connect of a RealEnsemble returns a Manager with the given options that ends with the test.
func TestRealConnect(t *testing.T) {
	t.Parallel()
	e := RealZooKeeper(t, 1)
	m := e.Connect(t, session.WithTimeout(4*time.Second))
	s, err := m.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s.Timeout() != 4*time.Second {
		t.Errorf("timeout %v", s.Timeout())
	}
	if _, err := s.Create(t.Context(), "/made", nil, 0); err != nil {
		t.Error(err)
	}
}
