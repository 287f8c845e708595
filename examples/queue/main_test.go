package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// asProgram has this binary be the program, because the producer starts its own
// binary again for each consumer.
const asProgram = "ZKSYNC_EXAMPLES_QUEUE"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// buffer can be looked at while it is written.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// When a consumer is killed with kill -9, every order is received and acknowledged by a consumer.
func TestOneOfThemIsKilled(t *testing.T) {
	t.Setenv(asProgram, "1")
	out := &buffer{}
	if err := show(t.Context(), out); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		`(?m)^order-21 had to wait \S+ for room$`,
		`(?m)^kill -9 consumer 1, which has order-\d+ in hand$`,
		`(?m)^consumer \d has returned order-\d*0$`,
		`OK: each of 100 orders was acknowledged exactly once\.`,
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("no line matches %s in\n%s", want, out)
		}
	}
}

// A consumer that is told to stop gives its orders back, and reports the order that it was working on.
func TestStoppedAtWork(t *testing.T) {
	srv := zksynctest.Start(t, zksynctest.WithTick(timeout/10))
	q := zksync.NewQueue(srv.Connect(t), path)
	defer q.Close()
	for n := range 50 {
		if err := q.Put(t.Context(), fmt.Appendf(nil, "order-%d", n+1)); err != nil {
			t.Fatal(err)
		}
	}
	stdin, stop := io.Pipe()
	out, ended := &buffer{}, make(chan error)
	go func() { ended <- consume(t.Context(), srv.Addr(), stdin, out) }()
	for limit := time.Now().Add(time.Minute); !strings.Contains(out.String(), "received order-2\n"); time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("waited in vain for an order:\n%s", out)
		}
	}
	stop.Close()
	if err := <-ended; err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	n, err := q.Len(t.Context())
	if acks := strings.Count(out.String(), "acknowledged"); err != nil || n != 50-acks || n == 0 {
		t.Errorf("%d orders are left, %v, after %d acknowledgements:\n%s", n, err, acks, out)
	}
	if lines := strings.Count(out.String(), "\n"); lines%2 != 0 {
		t.Errorf("the consumer does not report what became of an order:\n%s", out)
	}
}

// The ledger finds orders that were lost or repeated and a run without a killed consumer, and accepts that the last
// acknowledgement of the killed consumer is unknown.
func TestLedger(t *testing.T) {
	for name, c := range map[string]struct {
		change func(l *ledger)
		want   string // empty if all is right
	}{
		"each once":            {func(*ledger) {}, ""},
		"with the last breath": {func(l *ledger) { delete(l.acks, l.inHand) }, ""},
		"returned":             {func(l *ledger) { l.enter(0, returned, "order-7") }, ""},
		"lost":                 {func(l *ledger) { delete(l.acks, "order-8") }, "order-8 was acknowledged 0 times"},
		"twice":                {func(l *ledger) { l.enter(0, acknowledged, "order-9") }, "order-9 was acknowledged 2 times"},
		"no death":             {func(l *ledger) { l.inHand = "" }, "no consumer was killed"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			l := &ledger{out: &out, acks: make(map[string]int)}
			for n := 1; n <= orders; n++ {
				order := fmt.Sprintf("order-%d", n)
				if kill := l.enter(victim, received, order); kill != (n == 10) {
					t.Errorf("order %d: kill %v", n, kill)
				}
				l.enter(0, acknowledged, order)
			}
			c.change(l)
			err := l.verdict()
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("verdict %v, want %q", err, c.want)
			}
			if strings.Contains(out.String(), "OK: ") != (c.want == "") {
				t.Errorf("it says\n%s", &out)
			}
		})
	}
}
