package queue

import "sync"

// A deliverySet has the deliveries of a consumer that were received and are not settled.
type deliverySet struct {
	mu  sync.Mutex
	all map[*Delivery]struct{}
}

// add adds a delivery. Call it before the receipt: the receiver may settle the message at
// once.
func (s *deliverySet) add(d *Delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = make(map[*Delivery]struct{})
	}
	s.all[d] = struct{}{}
	d.set = s
}

// remove removes a delivery, if the set has it. A nil set is empty.
func (s *deliverySet) remove(d *Delivery) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, d)
}

// take removes and returns the deliveries of a view, or of all views if v is nil.
func (s *deliverySet) take(v *view) (taken []*Delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for d := range s.all {
		if v == nil || d.v == v {
			taken = append(taken, d)
			// Under the lock of the look: the end of a session and Close must not both end d.
			delete(s.all, d)
		}
	}
	return taken
}
