package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-zksync/toolkit/zksynctest"
)

// items returns the output of a consumer of so many items, if it is the only
// consumer.
func items(who string, count int) string {
	var b strings.Builder
	for i := range count {
		fmt.Fprintf(&b, "%sitem %d\n", who, firstItem+i)
	}
	return b.String()
}

// The consumer prints each item that the producer put, in order.
func TestQueueOnItsOwnServer(t *testing.T) {
	for _, what := range []string{producer, consumer} {
		done, stdout, stderr := start(t.Context(), "qTest", "embedded", "20", what)
		if code := <-done; code != succeeded || stderr.Len() > 0 {
			t.Fatalf("exits with %d: %s", code, stderr)
		}
		const produced = "producer: produced 20\n"
		if out := stdout.String(); strings.Replace(out, produced, "", 1) != items("consumer: ", 20) || !strings.Contains(out, produced) {
			t.Errorf("it prints\n%s", out)
		}
	}
}

// One process puts all items, of four bytes each, and another gets them in order.
func TestQueueOneAfterTheOther(t *testing.T) {
	srv := zksynctest.Start(t)
	done, stdout, stderr := start(t.Context(), "qTest", srv.Addr(), "5", "p")
	if code := <-done; code != succeeded || stdout.String() != "produced 5\n" {
		t.Fatalf("exits with %d: %s%s", code, stdout, stderr)
	}
	names, _ := srv.Children(queuePath)
	slices.Sort(names)
	if len(names) < 5 || !strings.HasPrefix(names[0], "qn-0000") {
		t.Fatalf("it puts %v", names)
	}
	if data, _ := srv.Get(queuePath + "/" + names[0]); string(data) != "\x00\x00\x00\x0a" {
		t.Errorf("the first item is %q", data)
	}
	done, stdout, stderr = start(t.Context(), "qTest", srv.Addr(), "5", "c")
	if code := <-done; code != succeeded || stdout.String() != items("", 5) {
		t.Errorf("exits with %d: %s%s", code, stdout, stderr)
	}
}

// Two consumers that were there before the producer share the items.
func TestQueueSharedOut(t *testing.T) {
	srv := zksynctest.Start(t)
	one, stdout1, stderr1 := start(t.Context(), "qTest", srv.Addr(), "10", "c")
	two, stdout2, stderr2 := start(t.Context(), "qTest", srv.Addr(), "10", "c")
	three, _, stderr3 := start(t.Context(), "qTest", srv.Addr(), "20", "p")
	if a, b, c := <-one, <-two, <-three; a != succeeded || b != succeeded || c != succeeded {
		t.Fatalf("they exit with %d, %d and %d: %s%s%s", a, b, c, stderr1, stderr2, stderr3)
	}
	got := slices.Sorted(strings.Lines(stdout1.String() + stdout2.String()))
	if want := items("", 20); strings.Join(got, "") != want {
		t.Errorf("%v are consumed, want each of\n%s", got, want)
	}
}

// A consumer that waits for more items than there are says how many there were when it is interrupted.
func TestQueueInterrupted(t *testing.T) {
	srv := zksynctest.Start(t)
	done, _, stderr := start(t.Context(), "qTest", srv.Addr(), "2", "p")
	if code := <-done; code != succeeded {
		t.Fatalf("exits with %d: %s", code, stderr)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, errs := watchedFor{"item 11\n", cancel}, new(bytes.Buffer)
	if code := run(ctx, []string{"qTest", srv.Addr(), "3", "c"}, out, errs); code != failed ||
		!strings.Contains(errs.String(), "2 of 3 were consumed") || !strings.Contains(errs.String(), queuePath) {
		t.Errorf("exits with %d: %s", code, errs)
	}
}

// watchedFor does something when a line is written.
type watchedFor struct {
	line string
	do   func()
}

func (w watchedFor) Write(b []byte) (int, error) {
	if string(b) == w.line {
		w.do()
	}
	return len(b), nil
}

// A message of another program in the queue is an error that quotes the message.
func TestQueueOfSomebodyElse(t *testing.T) {
	srv := zksynctest.Start(t)
	if err := srv.Create(queuePath, nil); err != nil {
		t.Fatal(err)
	}
	if err := srv.Create(queuePath+"/qn-0000000000", []byte("hello")); err != nil {
		t.Fatal(err)
	}
	done, _, stderr := start(t.Context(), "qTest", srv.Addr(), "1", "c")
	if code := <-done; code != failed || !strings.Contains(stderr.String(), `"hello" is no item`) {
		t.Errorf("exits with %d: %s", code, stderr)
	}
}
