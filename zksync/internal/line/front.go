package line

import (
	"iter"
	"slices"
	"strings"

	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A position is a contender as a listing shows it.
type position struct {
	name  string
	class Class
	seq   int32
}

// before reports whether m is in line before n.
func (m position) before(n position) bool {
	if m.seq == n.seq {
		return m.name < n.name
	}
	return znode.Earlier(m.seq, n.seq)
}

// sort returns the contenders of a listing in the order of the line.
func (r Rule) sort(names []string) []position {
	var all []position
	for _, name := range names {
		if c, seq, ok := r.Parse(name); ok {
			all = append(all, position{name, c, seq})
		}
	}
	slices.SortFunc(all, func(a, b position) int {
		switch {
		case a.before(b):
			return -1
		case b.before(a):
			return 1
		}
		return 0
	})
	return all
}

// A front has the contenders that block a contender, as far as the contender needs to
// know them.
type front struct {
	near, far string // the two nearest; empty if there are none
	last      bool   // no other contender than near
	listed    bool   // the contender itself is in the list

	frontSummary
}

// A frontSummary has the parts of a front that errors and log lines mention.
type frontSummary struct {
	count int    // of contenders that block
	first string // the first of these contenders
	leads bool   // first is the first of the whole line, and so holds
}

// front finds the contenders that block the contender. It does not sort the line, which may be long.
func (v *lineView) front(names iter.Seq[string]) front {
	var f front
	var near, far, first, head position
	for name := range names {
		m := position{name: name}
		var ok bool
		if m.class, m.seq, ok = v.line.Rule.Parse(name); !ok {
			continue
		}
		if head.name == "" || m.before(head) {
			head = m
		}
		if name == v.name {
			f.listed = true
			continue
		}
		if !znode.Earlier(m.seq, v.seq) || !v.line.Rule.blocks(m.class, v.line.Class) {
			continue
		}
		f.count++
		if first.name == "" || m.before(first) {
			first = m
		}
		switch {
		case near.name == "" || near.before(m):
			near, far = m, near
		case far.name == "" || far.before(m):
			far = m
		}
	}
	f.near, f.far = strings.Clone(near.name), strings.Clone(far.name)
	f.leads = f.count > 0 && first.name == head.name
	switch first.name {
	case near.name:
		f.first = f.near
	case far.name:
		f.first = f.far
	default:
		f.first = strings.Clone(first.name)
	}
	f.last = near.name != "" && far.name == ""
	return f
}
