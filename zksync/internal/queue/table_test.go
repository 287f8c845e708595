package queue

import (
	"math"
	"reflect"
	"slices"
	"testing"
)

// Names of messages are the same after encodeNames and decodeNames.
func FuzzNames(f *testing.F) {
	f.Add("qn-", uint32(0), uint8(3), uint8(1))
	f.Add("qn-1700000000000-", uint32(2147483640), uint8(200), uint8(2))
	f.Fuzz(func(t *testing.T, prefix string, first uint32, n, step uint8) {
		for _, c := range prefix {
			if c <= ' ' || c == '=' || c == ':' || c > '~' {
				return
			}
		}
		var names []string
		for i := range int(n) {
			names = append(names, it(prefix, int32(first)&math.MaxInt32, i*int(step)))
		}
		slices.Sort(names)
		names = slices.Compact(names)
		var got []string
		if err := decodeNames(encodeNames(names), func(name string) { got = append(got, name) }); err != nil {
			t.Fatal(err)
		}
		slices.Sort(got)
		if !slices.Equal(got, names) {
			t.Errorf("%q became %q by %q", names, got, encodeNames(names))
		}
	})
}

func it(prefix string, first int32, add int) string {
	n := (int64(first) + int64(add)) & math.MaxInt32
	const digits = "0123456789"
	b := []byte(prefix + "0000000000")
	for i := len(b) - 1; n > 0; i-- {
		b[i] = digits[n%10]
		n /= 10
	}
	return string(b)
}

// A table is the same after encode and decode, and data of another kind is refused.
func TestTableIsCoded(t *testing.T) {
	table := &claimTable{recovered: 3, later: true, partitions: map[int64]*partitionClaims{
		7: {hasCursor: true, cursor: -5, entries: map[string]claimEntry{"qn-0000000001": {returned, 2}, "qn-0000000002": {returned, 2}, "odd": {claimed, 0}}},
		9: {hasCursor: true, entries: map[string]claimEntry{}},
	}}
	got, err := decodeTable(table.encode())
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, table) {
		t.Errorf("got %s", got.encode())
	}
	before := len(table.encode())
	if table.of(11); len(table.encode()) != before {
		t.Errorf("a partition without claims makes the table longer: %s", table.encode())
	}
	for _, data := range []string{"x", "zksync-claims/2 1 true", "zksync-claims/1 0 false\nzz -", "zksync-claims/1 0 false\n1 -\n c x qn-:1", "zksync-claims/1 0 false\n1 -\n c 1 qn-:5-1"} {
		if _, err := decodeTable([]byte(data)); err == nil {
			t.Errorf("%q was decoded", data)
		}
	}
}

// A claim makes all messages up to its last message claimed, except passed messages, and
// giving back makes a message free again.
func TestTableStates(t *testing.T) {
	all := make([]message, 6)
	for i := range all {
		all[i] = message{czxid: 1, Item: Item{Name: it("qn-", 10, i), Seq: int32(10 + i)}}
	}
	table := &claimTable{partitions: make(map[int64]*partitionClaims)}
	claim := func(messages []message, passed ...message) {
		for _, m := range messages {
			table.claim(m)
		}
		for _, m := range passed {
			table.keepFree(m)
		}
	}
	free := func() (free []int) {
		for i, m := range all {
			if table.isFree(m) {
				free = append(free, i)
			}
		}
		return free
	}
	for _, step := range []struct {
		do   func()
		want []int
	}{
		{func() {}, []int{0, 1, 2, 3, 4, 5}},
		{func() { claim(all[1:4], all[0]) }, []int{0, 4, 5}},
		{func() { table.giveBack(all[2].key(), 1) }, []int{0, 2, 4, 5}},
		{func() { claim(all[2:3]) }, []int{0, 4, 5}},
		{func() { table.forget(all[2].key()) }, []int{0, 4, 5}},
		{func() { claim(all[4:]) }, []int{0}},
	} {
		if step.do(); !slices.Equal(free(), step.want) {
			t.Errorf("free: %v, want %v", free(), step.want)
		}
	}
	// The last number of a counter is used again and again.
	last := message{czxid: 1, Item: Item{Name: "qn-2147483647", Seq: math.MaxInt32}}
	table.claim(last)
	if table.isFree(last) {
		t.Error("a claimed message is free")
	}
	if table.forget(last.key()); !table.isFree(last) {
		t.Error("the next message of the last number is claimed")
	}
}

// A range with more names than one range may have can be read again.
func TestLongRangeOfNames(t *testing.T) {
	names := make([]string, maxRange+1)
	for i := range names {
		names[i] = itemName(i)
	}
	n := 0
	if err := decodeNames(encodeNames(names), func(string) { n++ }); err != nil || n != len(names) {
		t.Errorf("%d of %d names: %v", n, len(names), err)
	}
}
