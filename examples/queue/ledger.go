package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// A ledger has the deliveries of every order, as the consumers report them.
type ledger struct {
	mu     sync.Mutex
	names  []string // of the consumers
	killed []bool   // by consumer
	died   time.Time
	orders [][]delivery // by number, from 0
	errors []string
}

// A delivery of an order to a consumer ends in one of the ways that a worker
// tells of, or by its death.
type delivery struct {
	consumer int
	end      string // empty while the consumer has the order
}

func newLedger(orders int, names []string) *ledger {
	return &ledger{names: names, killed: make([]bool, len(names)), orders: make([][]delivery, orders)}
}

// An event is a parsed line of a consumer.
type event struct {
	what   string
	order  int
	count  int     // of the orders that the consumer has received
	before *holder // the consumer that had the order before
}

type holder struct {
	name string
	dead bool
	ago  time.Duration // since it died
}

// enter adds a line of a consumer, unless the line makes no sense.
func (l *ledger) enter(consumer int, line string) (e event, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer func() {
		if !ok {
			l.errors = append(l.errors, fmt.Sprintf("%s says %q", l.names[consumer], line))
		}
	}()
	words := strings.SplitN(line, " ", 3)
	if len(words) < 3 {
		return e, false
	}
	n, ok := number([]byte(words[2]))
	if !ok || n < 1 || n > len(l.orders) {
		return e, false
	}
	e = event{what: words[1], order: n}
	of := &l.orders[n-1]
	if e.what == received {
		if was := len(*of) - 1; was >= 0 {
			c := (*of)[was].consumer
			e.before = &holder{name: l.names[c], dead: l.killed[c] && (*of)[was].end == "", ago: time.Since(l.died)}
		}
		*of = append(*of, delivery{consumer: consumer})
		e.count = l.count(consumer, func(delivery) bool { return true })
		return e, true
	}
	for i := len(*of) - 1; i >= 0; i-- {
		if d := &(*of)[i]; d.consumer == consumer && d.end == "" {
			d.end = e.what
			return e, true
		}
	}
	return e, false
}

// kill notes that a consumer was killed. Lines that come later may have been printed
// before.
func (l *ledger) kill(consumer int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.killed[consumer] = true
	l.died = time.Now()
}

// count is how many deliveries to a consumer are of a kind.
func (l *ledger) count(consumer int, kind func(delivery) bool) int {
	n := 0
	for _, of := range l.orders {
		for _, d := range of {
			if d.consumer == consumer && kind(d) {
				n++
			}
		}
	}
	return n
}

// print draws the balance, with how many orders are left in the queue, and says
// whether it is right.
func (l *ledger) print(out io.Writer, left int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	ends := []string{acknowledged, returned, lost, ""}
	sums := make([]int, len(ends)+1)
	fmt.Fprintf(out, "\n%-12s %8s = %12s + %8s + %4s + %9s\n", "consumer", received, acknowledged, returned, lost, "died with")
	for c, name := range l.names {
		if l.killed[c] {
			name += ", killed"
		}
		counts := []int{l.count(c, func(delivery) bool { return true })}
		for _, end := range ends {
			counts = append(counts, l.count(c, func(d delivery) bool { return d.end == end }))
		}
		for i, n := range counts {
			sums[i] += n
		}
		balance(out, name, counts)
	}
	balance(out, "all", sums)
	return l.verdict(out, left)
}

func balance(out io.Writer, name string, n []int) {
	fmt.Fprintf(out, "%-12s %8d = %12d + %8d + %4d + %9d\n", name, n[0], n[1], n[2], n[3], n[4])
}

// verdict says of all orders together what became of them, and of each for which
// it was not one acknowledgement.
func (l *ledger) verdict(out io.Writer, left int) bool {
	wrong := slices.Clone(l.errors)
	if !slices.Contains(l.killed, true) {
		wrong = append(wrong, fmt.Sprintf("nobody was killed: %s did not receive %d orders, as it would with more -orders", l.names[victim], lastOrder))
	}
	if left > 0 {
		wrong = append(wrong, fmt.Sprintf("%d orders are left in the queue", left))
	}
	once, again, unsaid := 0, 0, 0
	for i, of := range l.orders {
		acks := 0
		for nth, d := range of {
			switch {
			case d.end == acknowledged:
				acks++
			case d.end == "" && !l.killed[d.consumer]:
				wrong = append(wrong, fmt.Sprintf("%s does not say what it did with order %d", l.names[d.consumer], i+1))
			case d.end == "" && nth < len(of)-1:
				again++
			case d.end == "":
				// It is not in the queue, and nobody else had it: its last word was an
				// acknowledgement, which reached the servers and not us.
				acks++
				unsaid++
			}
		}
		if acks == 1 {
			once++
		} else {
			wrong = append(wrong, fmt.Sprintf("order %d was received %d times and acknowledged %d times", i+1, len(of), acks))
		}
	}
	fmt.Fprintf(out, "\n%d of %d orders were acknowledged exactly once", once, len(l.orders))
	if unsaid > 0 {
		fmt.Fprintf(out, ", %d of them with the last breath of the one that was killed", unsaid)
	}
	fmt.Fprintf(out, ".\nDelivered again after the death of their consumer: %d. Left in the queue: %d.\n", again, left)
	for _, w := range wrong {
		fmt.Fprintln(out, "WRONG:", w)
	}
	if len(wrong) == 0 {
		fmt.Fprintln(out, "OK: every order is accounted for.")
	}
	return len(wrong) == 0
}
