package main

import (
	"fmt"
	"io"
	"sync"
)

// The reports of a consumer about an order.
const (
	received     = "received"
	acknowledged = "acknowledged" // the work is done, and no consumer gets the order again
	returned     = "returned"     // the work is not done, and another consumer gets the order
	lost         = "lost"         // the consumer lost its session, and with it the order
)

const victim = 1 // is killed when it has received its tenth order

// A ledger has the reports of the consumers.
type ledger struct {
	mu       sync.Mutex
	out      io.Writer
	received [3]int         // by consumer
	acks     map[string]int // by order
	inHand   string         // the order that the victim died with
}

func (l *ledger) say(format string, args ...any) { fmt.Fprintf(l.out, format+"\n", args...) }

// enter adds a report of a consumer, and tells whether to kill the consumer now.
func (l *ledger) enter(consumer int, what, order string) (kill bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch what {
	case acknowledged:
		l.acks[order]++
	case received:
		l.received[consumer]++
		if order == l.inHand {
			l.say("consumer %d receives %s, which consumer %d died with", consumer, order, victim)
		}
		if kill = consumer == victim && l.received[victim] == 10 && l.inHand == ""; kill {
			l.say("kill -9 consumer %d, which has %s in hand", consumer, order)
			l.inHand = order
		}
	default:
		l.say("consumer %d has %s %s", consumer, what, order)
	}
	return kill
}

// verdict says whether each order was acknowledged once. The last acknowledgement of
// the victim may have reached the servers and not us.
func (l *ledger) verdict() error {
	for n := 1; n <= orders; n++ {
		order := fmt.Sprintf("order-%d", n)
		if acks := l.acks[order]; acks != 1 && !(acks == 0 && order == l.inHand) {
			return fmt.Errorf("%s was acknowledged %d times", order, acks)
		}
	}
	if l.inHand == "" {
		return fmt.Errorf("no consumer was killed: consumer %d received only %d orders", victim, l.received[victim])
	}
	l.say("The consumers received %v orders.\nOK: each of %d orders was acknowledged exactly once.", l.received, orders)
	return nil
}
