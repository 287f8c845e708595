package queue

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func items(seqs ...int32) []Item {
	var all []Item
	for _, seq := range seqs {
		all = append(all, Item{Name: fmt.Sprintf("qn-%010d", seq), Seq: seq})
	}
	return all
}

func drain(b *backlog) string {
	var got []string
	for it, ok := b.pop(); ok; it, ok = b.pop() {
		got = append(got, fmt.Sprint(it.Seq))
	}
	return strings.Join(got, " ")
}

// A backlog gives messages in the order of their numbers, including messages that were
// put back.
func TestBacklogKeepsTheOrder(t *testing.T) {
	var b backlog
	if _, ok := b.pop(); ok {
		t.Error("an empty backlog has a message")
	}
	b.replace(items(3, 4, 5, 9))
	for _, seq := range []int32{3, 4} {
		if it, ok := b.pop(); !ok || it.Seq != seq {
			t.Errorf("took %v, %v, want %d", it, ok, seq)
		}
	}
	for _, it := range items(4, 3, 4, 7) {
		b.insert(it)
	}
	if b.len() != 5 {
		t.Errorf("%d messages wait, want 5", b.len())
	}
	if got := drain(&b); got != "3 4 5 7 9" {
		t.Error("taken:", got)
	}
}

// A backlog gives a message once that was put back and is also in the next listing.
func TestBacklogTakesOnce(t *testing.T) {
	b := backlog{}
	b.replace(items(1, 2, 3))
	b.insert(items(2)[0])
	if got := drain(&b); got != "1 2 3" {
		t.Error("taken:", got)
	}
	b.insert(items(2)[0])
	b.replace(items(3))
	if got := drain(&b); got != "3" {
		t.Error("a listing is not all there is:", got)
	}
}

// A backlog keeps the order of numbers across the overflow of the counter.
func TestBacklogAcrossTheWrap(t *testing.T) {
	var b backlog
	b.replace(items(2147483647, -2147483648, -2147483647))
	b.pop()
	b.insert(items(2147483647)[0])
	if got := drain(&b); got != "2147483647 -2147483648 -2147483647" {
		t.Error("taken:", got)
	}
}

// A backlog counts the messages that are due at a time.
func TestBacklogCountsWhatIsDue(t *testing.T) {
	var b backlog
	all := items(1, 2, 3, 4)
	for i, due := range []int64{10, 20, 20, 30} {
		all[i].Due = due
	}
	b.replace(slices.Clone(all[1:]))
	b.insert(all[0])
	for now, want := range map[int64]int{9: 0, 10: 1, 19: 1, 20: 3, 29: 3, 30: 4} {
		if got := b.countDue(now); got != want {
			t.Errorf("at %d %d are due, want %d", now, got, want)
		}
	}
}
