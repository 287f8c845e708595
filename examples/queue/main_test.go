package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// asProgram has this binary be the program, because the producer starts its own
// binary again for each consumer.
const asProgram = "ZKSYNC_EXAMPLES_QUEUE"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	goleak.VerifyTestMain(zksynctest.StopSharedAfter(m))
}

var noInput = strings.NewReader("")

// accounted wants one consumer killed, and every order acknowledged.
func accounted(t *testing.T, orders int, args ...string) {
	t.Helper()
	t.Setenv(asProgram, "1")
	var out, errs bytes.Buffer
	args = append(args, "-orders", fmt.Sprint(orders), "-work", "20ms", "-fail", "20", "-timeout", "1s")
	if status := run(t.Context(), args, noInput, &out, &errs); status != succeeded || errs.Len() > 0 {
		t.Fatalf("exits with %d: %s\n%s", status, &errs, &out)
	}
	text := out.String()
	_, after, killed := strings.Cut(text, ">>>       kill -9 c2, which has order ")
	if !killed || !regexp.MustCompile(`(?m)^c2, killed +\d+ = .* 1$`).MatchString(text) {
		t.Errorf("c2 was not killed with an order in hand:\n%s", text)
	}
	if !strings.Contains(after, "which c2 died with") && !strings.Contains(after, "last breath") {
		t.Errorf("nothing came of the order of the dead:\n%s", text)
	}
	if strings.Index(text, "order 21, which had to wait") < strings.Index(text, "its first") {
		t.Errorf("order 21 went in before anybody received one:\n%s", text)
	}
	for _, want := range []string{
		"the queue takes no more than 20",
		"order 21, which had to wait",
		"gives order 20 back, undone",
		"receives order 20",
		fmt.Sprintf("\n%d of %d orders were acknowledged exactly once", orders, orders),
		"Left in the queue: 0.",
		"\nOK: ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

// When a consumer is killed with kill -9, every order is received and acknowledged by a consumer.
func TestOneOfThemIsKilled(t *testing.T) { accounted(t, 100) }

// The example accounts for every order on a server that is running, embedded or real.
func TestOnServers(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		accounted(t, 100, "-servers", srv.Address(), "-path", servers.Path(t), "-consumers", "2")
	})
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

// start runs the program in this process; wait wants its end.
func start(t *testing.T, stdin io.Reader, args ...string) (out *buffer, wait func()) {
	t.Helper()
	out = &buffer{}
	errs, status := &buffer{}, make(chan int, 1)
	go func() { status <- run(t.Context(), args, stdin, out, errs) }()
	return out, func() {
		t.Helper()
		if got := <-status; got != succeeded || errs.String() != "" {
			t.Fatalf("%v exits with %d: %s", args, got, errs)
		}
	}
}

// The producer and the consumer of the example work each by itself, in both ways of consuming.
func TestAlone(t *testing.T) {
	for _, how := range []string{"", "-chan"} {
		t.Run(how, func(t *testing.T) {
			srv := zksynctest.Start(t)
			q := zksync.NewQueue(srv.Connect(t), "/q")
			defer q.Close()
			args := []string{"-servers", srv.Addr(), "-path", "/q"}
			produced, done := start(t, noInput, append(args, "-produce", "30", "-capacity", "5")...)
			stdin, stop := io.Pipe()
			consume := append(args, "-consume", "-id", "me", "-until-eof", "-work", "1ms", "-fail", "10")
			if how != "" {
				consume = append(consume, how)
			}
			consumed, stopped := start(t, stdin, consume...)
			done()
			if !strings.HasPrefix(produced.String(), "30 orders were put into /q in ") {
				t.Errorf("the producer says %q", produced)
			}
			await(t, "the last order", func() bool { return strings.Contains(consumed.String(), "me received order 30") })
			await(t, "an empty queue", func() bool {
				n, err := q.Len(t.Context())
				return err == nil && n == 0
			})
			stop.Close()
			stopped()
			text := consumed.String()
			for n := 1; n <= 30; n++ {
				deliveries, acks, returns := 1, 1, 0
				if how != "" {
					acks = 0 // Chan needs none
				} else if n%10 == 0 {
					deliveries, returns = 2, 1
				}
				for what, want := range map[string]int{received: deliveries, acknowledged: acks, returned: returns} {
					if got := strings.Count(text, fmt.Sprintf("me %s order %d\n", what, n)); got != want {
						t.Errorf("%d times %s order %d, want %d:\n%s", got, what, n, want, text)
					}
				}
			}
		})
	}
}

func await(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for limit := time.Now().Add(time.Minute); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// A queue that holds messages of other programs is refused, since the example cannot account for them.
func TestNotAnEmptyQueue(t *testing.T) {
	srv := zksynctest.Start(t)
	q := zksync.NewQueue(srv.Connect(t), "/q")
	defer q.Close()
	if err := q.Put(t.Context(), []byte("order 1")); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	status := run(t.Context(), []string{"-servers", srv.Addr(), "-path", "/q"}, noInput, &out, &errs)
	if status != failed || !strings.Contains(errs.String(), "/q holds messages from before (1)") {
		t.Errorf("exits with %d: %s", status, &errs)
	}
}

// A producer that waits for room can be interrupted.
func TestInterrupted(t *testing.T) {
	srv := zksynctest.Start(t)
	q := zksync.NewQueue(srv.Connect(t), "/q")
	defer q.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for n := 0; n < 2 && ctx.Err() == nil; {
			n, _ = q.Len(ctx)
		}
		cancel()
	}()
	var out, errs bytes.Buffer
	status := run(ctx, []string{"-servers", srv.Addr(), "-path", "/q", "-produce", "3", "-capacity", "2"}, noInput, &out, &errs)
	// The second order may be there before its Put knows: then it cannot say.
	if status != failed || !strings.Contains(errs.String(), "put /q: ") || !strings.Contains(errs.String(), "context canceled") {
		t.Errorf("exits with %d: %s", status, &errs)
	}
	if n, err := q.Len(t.Context()); n != 2 {
		t.Errorf("%d orders are in the queue, %v, want 2", n, err)
	}
}

// A consumer that is told to stop gives its order back.
func TestStoppedAtWork(t *testing.T) {
	srv := zksynctest.Start(t)
	q := zksync.NewQueue(srv.Connect(t), "/q")
	defer q.Close()
	if err := q.Put(t.Context(), []byte("order 1")); err != nil {
		t.Fatal(err)
	}
	stdin, stop := io.Pipe()
	out, stopped := start(t, stdin, "-servers", srv.Addr(), "-path", "/q", "-consume", "-id", "me", "-until-eof", "-work", "1h")
	await(t, "the order", func() bool { return out.String() != "" })
	stop.Close()
	stopped()
	if want := "me received order 1\nme returned order 1\n"; out.String() != want {
		t.Errorf("it says %q, want %q", out, want)
	}
	if data, ok, err := q.TryTake(t.Context()); string(data) != "order 1" || !ok || err != nil {
		t.Errorf("what is left is %q, %v, %v", data, ok, err)
	}
}

// Wrong usage ends with the usage status and names the mistake.
func TestUsage(t *testing.T) {
	for _, test := range []struct {
		args   string
		status int
		want   string
	}{
		{"-help", succeeded, "-capacity"},
		{"-nonsense", misused, "nonsense"},
		{"more", misused, "more"},
		{"-capacity 0", misused, "-capacity 0"},
		{"-orders 0", misused, "-orders 0"},
		{"-work -1s", misused, "-work -1s"},
		{"-fail -1", misused, "-fail -1"},
		{"-consumers 1", misused, "-consumers 1"},
		{"-path orders", misused, `"orders"`},
		{"-path /", misused, `"/"`},
		{"-consume", misused, "-servers"},
		{"-produce 5", misused, "-servers"},
		{"-servers h -produce -1", misused, "-produce -1"},
		{"-servers h -produce 5 -consume", misused, "two processes"},
		{"-servers h -chan", misused, "-consume"},
		{"-servers h:b:c -consume", misused, "h:b:c"},
		{"-timeout -1s", misused, "-1s"},
	} {
		var out, errs bytes.Buffer
		status := run(t.Context(), strings.Fields(test.args), noInput, &out, &errs)
		if status != test.status || !strings.Contains(errs.String(), test.want) {
			t.Errorf("%s: exits with %d: %s", test.args, status, &errs)
		}
	}
}
