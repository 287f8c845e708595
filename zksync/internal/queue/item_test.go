package queue

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// The name of a message has a number, a due time and a priority only in the form that the queue writes.
func FuzzItem(f *testing.F) {
	for _, name := range []string{"qn-0000000001", "qn--000000001", "qn--2147483648", "qn-+000000001", "qn-99999999999", "qn-1763717810123-0000000001", "qn-000000000000--0000000001", "p-255", "t-1763717810"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if it, ok := parseItem(name); ok && len(name) == len("qn-0000000000") && name != fmt.Sprintf("qn-%010d", it.Seq) && it.Seq != 0 {
			t.Errorf("%q has number %d", name, it.Seq)
		}
		if it, ok := parseDelayed(name); ok && (it.Due < 0 || it.Due > MaxDueMillis || DelayedPrefix(it.Due) != name[:len(DelayedPrefix(0))]) {
			t.Errorf("%q is due at %d", name, it.Due)
		}
		if p, ok := parsePriorityPartition(name); ok && PriorityPartition(int(p)) != name {
			t.Errorf("%q is for priority %d", name, p)
		}
		if start, ok := parseDelayPartition(name); ok && start%partitionWidth.Milliseconds() == 0 && DelayPartition(start) != name {
			t.Errorf("%q begins at %d", name, start)
		}
	})
}

// Messages are ordered by their numbers, across the overflow of the counter, and by due time first in a DelayQueue.
func TestItemsAreInOrder(t *testing.T) {
	names := []string{"qn--2147483648", "other", "qn-2147483646", "qn-2147483647", "qn--2147483640"}
	var order []int32
	for _, it := range ItemsOf(names, parseItem) {
		order = append(order, it.Seq)
	}
	if want := []int32{math.MaxInt32 - 1, math.MaxInt32, math.MinInt32, math.MinInt32 + 8}; !slices.Equal(order, want) {
		t.Errorf("across the wrap the order is %v, want %v", order, want)
	}
	names = []string{"qn-0000000002000-0000000001", "qn-0000000001000-0000000009", "qn-0000000001000-0000000008", "qn-0000000001"}
	var found []string
	for _, it := range ItemsOf(names, parseDelayed) {
		found = append(found, it.Name)
	}
	if want := []string{names[2], names[1], names[0]}; !slices.Equal(found, want) {
		t.Errorf("by time the order is %v, want %v", found, want)
	}
	for _, name := range []string{"p-256", "p-1", "p--01", "p-0001", "t-176371781", "t-17637178100", "qn-0000000001000-000000001", "qn-000000000100x-0000000001", "qn-+000000001000-0000000001"} {
		_, priority := parsePriorityPartition(name)
		_, partition := parseDelayPartition(name)
		_, delayed := parseDelayed(name)
		if priority || partition || delayed {
			t.Errorf("%s counts as one of ours", name)
		}
	}
}
