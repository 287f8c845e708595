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
	type numbered struct {
		prefix string
		n      int64
	}
	var b strings.Builder
	var all []numbered
	for _, name := range names {
		at := len(name) - numberDigits
		n, ok := int64(0), false
		if at >= 0 {
			n, ok = parseDigits(name[at:])
		}
		if !ok {
			fmt.Fprintf(&b, "=%s ", name)
			continue
		}
		all = append(all, numbered{name[:at], n})
	}
	slices.SortFunc(all, func(x, y numbered) int {
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

// besideName returns the name with another number, or nothing if the name has no number.
func besideName(name string, by int64) string {
	at := len(name) - numberDigits
	if at < 0 {
		return ""
	}
	n, ok := parseDigits(name[at:])
	if !ok {
		return ""
	}
	return fmt.Sprintf("%s%0*d", name[:at], numberDigits, n+by)
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
		first, err := strconv.ParseUint(from, 10, 63)
		last, err2 := strconv.ParseUint(to, 10, 63)
		if err := cmp.Or(err, err2); err != nil {
			return err
		}
		if last < first || last-first >= maxRange {
			return fmt.Errorf("no range of names: %q", token)
		}
		for n := first; n <= last; n++ {
			add(fmt.Sprintf("%s%0*d", prefix, numberDigits, n))
		}
	}
	return nil
}
