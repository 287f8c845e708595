package session

import (
	"errors"
	"testing"
)

// A Set whose data was refused reports the refusal, even if a new session has written the former data before the Set
// looks at the outcome. To see this test fail, remove the comparison with settled from pendingData.settle.
func TestARefusedSetStaysRefused(t *testing.T) {
	d, why := newPendingData([]byte("good")), errors.New("refused")
	bad := d.want([]byte("bad"))
	d.settle(bad, []byte("bad"), why)
	data, generation, _ := d.present()
	d.settle(generation, data, nil)
	if over, _, refusal := d.outcome(bad); !over || refusal != why || string(data) != "good" {
		t.Errorf("over is %v with refusal %v and data %q, want the refusal %v and the former data", over, refusal, data, why)
	}
	better := d.want([]byte("better"))
	d.settle(better, []byte("better"), nil)
	if over, _, refusal := d.outcome(better); !over || refusal != nil {
		t.Errorf("the next Set: over is %v with refusal %v", over, refusal)
	}
}
