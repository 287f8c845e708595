package interop

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/zksync"
)

// queues maps the queues of other clients that share messages with our Queue to their kinds.
var queues = map[string]string{"SimpleDistributedQueue": "curator-queue", "the queue recipe": "recipe-queue"}

func forQueues(t *testing.T, test func(t *testing.T, srv servers.Server, path, kind string)) {
	for name, kind := range queues {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			both(t, func(t *testing.T, srv servers.Server) { test(t, srv, servers.Path(t), kind) })
		})
	}
}

func newQueue(t *testing.T, srv servers.Server, path string) *zksync.Queue {
	t.Helper()
	q := zksync.NewQueue(srv.Connect(t), path)
	t.Cleanup(func() { must(t, q.Close()) })
	return q
}

func numbered(prefix string, n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("%s%d", prefix, i))
	}
	return all
}

// wantTaken compares the messages that a peer has taken. Each message has an equals sign in front.
func wantTaken(t *testing.T, got string, want []string) {
	t.Helper()
	if got != "="+strings.Join(want, ",=") {
		t.Errorf("they took %s, want %s", got, want)
	}
}

// A Queue shares its messages with ZooKeeper's recipe and Curator's SimpleDistributedQueue.
// TestQueue passes messages in both directions, with each method that receives messages. The order
// of the messages is kept.
func TestQueue(t *testing.T) {
	t.Parallel()
	const n = 50
	forQueues(t, func(t *testing.T, srv servers.Server, path, kind string) {
		theirs := java.peer(t).connect(t, srv.Address(), alive).make(t, kind, path)
		q := newQueue(t, srv, path)

		want := numbered("go", n)
		for _, data := range want[:n/2] {
			must(t, q.Put(t.Context(), []byte(data)))
		}
		var rest [][]byte
		for _, data := range want[n/2:] {
			rest = append(rest, []byte(data))
		}
		must(t, q.PutAll(t.Context(), rest...))
		theirs.want(t, "=go0", "peek")
		wantTaken(t, theirs.call(t, "take", fmt.Sprint(n)), want)
		theirs.want(t, "nothing", "poll")

		receive := map[string]func() string{
			"Take": func() string {
				data, err := q.Take(t.Context())
				must(t, err)
				return string(data)
			},
			"Chan": func() string { return string(<-q.Chan()) },
		}
		other := newQueue(t, srv, path) // one value can use either Chan or Messages
		receive["Messages"] = func() string {
			m := <-other.Messages()
			must(t, m.Ack(t.Context()))
			return string(m.Data)
		}
		for _, way := range []string{"Take", "Messages", "Chan"} {
			want := numbered("java", n)
			theirs.call(t, "offer", want...)
			var got []string
			for range n {
				got = append(got, receive[way]())
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: received %q, want %q", way, got, want)
			}
			if way == "Messages" {
				must(t, other.Close())
			}
		}
	})
}

// Messages of all clients are received in the order in which they were put.
func TestQueueOrderOfProducers(t *testing.T) {
	t.Parallel()
	const n = 20
	forQueues(t, func(t *testing.T, srv servers.Server, path, kind string) {
		theirs := java.peer(t).connect(t, srv.Address(), alive).make(t, kind, path)
		q := newQueue(t, srv, path)
		put := func(want []string) {
			for i, data := range want {
				if i%2 == 0 {
					must(t, q.Put(t.Context(), []byte(data)))
				} else {
					theirs.call(t, "offer", data)
				}
			}
		}
		want := numbered("a", n)
		put(want)
		wantTaken(t, theirs.call(t, "take", fmt.Sprint(n)), want)
		put(want)
		for _, data := range want {
			if got, err := q.Take(t.Context()); string(got) != data || err != nil {
				t.Errorf("took %q, %v, want %q", got, err, data)
			}
		}
	})
}

// A message of another client wakes a waiting consumer.
func TestQueueWaits(t *testing.T) {
	t.Parallel()
	forQueues(t, func(t *testing.T, srv servers.Server, path, kind string) {
		client := java.peer(t).connect(t, srv.Address(), alive)
		theirs, consumer := client.make(t, kind, path), client.make(t, kind, path)
		q := newQueue(t, srv, path)
		must(t, q.Put(t.Context(), []byte("first")))
		consumer.want(t, "=first", "take", "1")
		waits := consumer.start("take", "1")
		must(t, q.Put(t.Context(), []byte("second")))
		if got := answered(t, "take", waits); got != "=second" {
			t.Errorf("they took %s", got)
		}
		taken := make(chan string, 1)
		taking := start(func() error {
			data, err := q.Take(t.Context())
			taken <- string(data)
			return err
		})
		theirs.call(t, "offer", "third")
		ended(t, "Take", taking)
		if got := <-taken; got != "third" {
			t.Errorf("took %s", got)
		}
	})
}

// With Take, each message is taken once, also beside consumers in other languages.
func TestQueueConsumersCompete(t *testing.T) {
	t.Parallel()
	const n = 150
	forQueues(t, func(t *testing.T, srv servers.Server, path, kind string) {
		lasting(t, srv, path) // if two clients create it at the same moment, the recipe fails
		client := java.peer(t).connect(t, srv.Address(), alive)
		producer, q := client.make(t, kind, path), newQueue(t, srv, path)
		// Two consumers of ZooKeeper's recipe that find no directory both create it, and the second
		// create fails.
		want := []string{"first"}
		must(t, q.Put(t.Context(), []byte("first")))
		var theirs []<-chan answer
		for range 2 {
			theirs = append(theirs, client.make(t, kind, path).start("take", fmt.Sprint(n/2)))
		}
		var mu sync.Mutex
		var got []string
		var wg sync.WaitGroup
		for range 2 {
			q := newQueue(t, srv, path)
			wg.Go(func() {
				for range n / 2 {
					data, err := q.Take(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					got = append(got, string(data))
					mu.Unlock()
				}
			})
		}
		for i := range n - 1 {
			a, b := fmt.Sprintf("a%d", i), fmt.Sprintf("b%d", i)
			want = append(want, a, b)
			must(t, q.Put(t.Context(), []byte(a)))
			producer.call(t, "offer", b)
		}
		want = append(want, "last")
		producer.call(t, "offer", "last")
		wg.Wait()
		for _, a := range theirs {
			for _, data := range strings.Split(answered(t, "take", a), ",") {
				got = append(got, strings.TrimPrefix(data, "="))
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%d taken of %d: %q", len(got), len(want), got)
		}
	})
}

// With LayoutKazoo a Queue and kazoo's Queue pass messages in both directions. kazoo's priorities are kept.
func TestQueueOfKazoo(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, srv servers.Server) {
		path := servers.Path(t)
		theirs := python.peer(t).connect(t, srv.Address(), alive).make(t, "kazoo-queue", path)
		q := zksync.NewQueue(srv.Connect(t), path, zksync.WithLayout(zksync.LayoutKazoo))
		want := numbered("go", 20)
		for _, data := range want {
			must(t, q.Put(t.Context(), []byte(data)))
		}
		theirs.want(t, "20", "length")
		for _, data := range want {
			theirs.want(t, "="+data, "poll")
		}
		theirs.want(t, "nothing", "poll")
		theirs.call(t, "offer", numbered("py", 20)...)
		theirs.call(t, "urgent", "now")
		for _, data := range append([]string{"now"}, numbered("py", 20)[:10]...) {
			got, err := q.Take(t.Context())
			if string(got) != data || err != nil {
				t.Errorf("took %q, %v, want %q", got, err, data)
			}
		}
		for _, data := range numbered("py", 20)[10:] {
			if got := string(<-q.Chan()); got != data {
				t.Errorf("received %q, want %q", got, data)
			}
		}
		must(t, q.Close())
		theirs.want(t, "0", "length")
	})
}

// Without LayoutKazoo a Queue and kazoo's Queue do not share messages. Kazoo's Queue names its
// messages differently, and treats every child as a message, including our helper directories.
func TestQueueOfKazooByDefault(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, srv servers.Server) {
		path := servers.Path(t)
		theirs := python.peer(t).connect(t, srv.Address(), alive).make(t, "kazoo-queue", path)
		theirs.call(t, "offer", "theirs")
		q := newQueue(t, srv, path)
		if data, ok, err := q.TryTake(t.Context()); ok || err != nil {
			t.Errorf("we took %q, %v", data, err)
		}
		must(t, q.Put(t.Context(), []byte("ours")))
		theirs.want(t, "=theirs", "poll")
		theirs.want(t, "=ours", "poll")
		if a := <-theirs.start("poll"); a.err == nil && a.text == "nothing" {
			t.Error("kazoo has learnt to tell messages from other children: use it")
		}
	})
}
