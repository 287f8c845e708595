package queue

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// numberDigits is the number of digits that a server gives a sequential znode.
const numberDigits = 10

// encodeNames writes names of messages in a short form. Consecutive numbers become a
// range: "qn-:5-9 :12" stands for six names. A name that does not end with ten digits is
// written as "=name".
func encodeNames(names []string) string {
	var b strings.Builder
	var all []numberedName
	for _, name := range names {
		if numbered, ok := splitName(name); ok {
			all = append(all, numbered)
		} else {
			fmt.Fprintf(&b, "=%s ", name)
		}
	}
	slices.SortFunc(all, func(x, y numberedName) int {
		return cmp.Or(cmp.Compare(x.prefix, y.prefix), cmp.Compare(x.n, y.n))
	})
	for i := 0; i < len(all); {
		last := i
		for last+1 < len(all) && last+1-i < maxRange && all[last+1].prefix == all[i].prefix && all[last+1].n-all[i].n == int64(last+1-i) {
			last++
		}
		if i == 0 || all[i-1].prefix != all[i].prefix {
			b.WriteString(all[i].prefix)
		}
		b.WriteByte(':')
		b.WriteString(strconv.FormatInt(all[i].n, 10))
		if last > i {
			b.WriteByte('-')
			b.WriteString(strconv.FormatInt(all[last].n, 10))
		}
		b.WriteByte(' ')
		i = last + 1
	}
	return strings.TrimSuffix(b.String(), " ")
}

// A numberedName is a name that ends with the digits of a number.
type numberedName struct {
	prefix string
	n      int64
}

func (m numberedName) String() string { return fmt.Sprintf("%s%0*d", m.prefix, numberDigits, m.n) }

// splitName reports whether a name has a number.
func splitName(name string) (m numberedName, ok bool) {
	at := max(0, len(name)-numberDigits)
	m.prefix = name[:at]
	m.n, ok = parseDigits(name[at:])
	return m, ok && len(name) >= numberDigits
}

// maxRange limits the names of one range, against data that another client has written.
// encodeNames splits longer ranges.
const maxRange = 1 << 20

// decodeNames calls add for each name that encodeNames has written.
func decodeNames(s string, add func(name string)) error {
	prefix := ""
	for _, token := range strings.Fields(s) {
		if name, ok := strings.CutPrefix(token, "="); ok {
			add(name)
			continue
		}
		before, numbers, ok := strings.Cut(token, ":")
		if !ok {
			return fmt.Errorf("no names: %q", token)
		}
		if before != "" {
			prefix = before
		}
		from, to, isRange := strings.Cut(numbers, "-")
		if !isRange {
			to = from
		}
		first, ok := parseDigits(from)
		last, ok2 := parseDigits(to)
		if !ok || !ok2 || last < first || last-first >= maxRange {
			return fmt.Errorf("no range of names: %q", token)
		}
		for i := range last - first + 1 {
			add(numberedName{prefix, first + i}.String())
		}
	}
	return nil
}
