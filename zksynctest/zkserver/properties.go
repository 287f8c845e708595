package zkserver

import (
	"fmt"
	"strconv"
	"strings"
)

// property is one logical line of a java.util.Properties file. A logical line may continue over
// several lines.
type property struct {
	line       int // number of its first line, from 1
	key, value string
}

// parseProperties parses java.util.Properties syntax: '#' and '!' begin a comment, a backslash at
// the end of a line continues it, the key ends at '=', ':' or white space, and \uXXXX is a
// character. The text is UTF-8; for ASCII this is the same as Java's Latin-1.
func parseProperties(text string) ([]property, error) {
	var list []property
	lines := strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text), "\n")
	for i := 0; i < len(lines); i++ {
		start, line := i+1, strings.TrimLeft(lines[i], propertySpace)
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		for continued(line) {
			line = line[:len(line)-1]
			if i++; i == len(lines) {
				break
			}
			line += strings.TrimLeft(lines[i], propertySpace)
		}
		key, value := cutProperty(line)
		p := property{line: start}
		var err error
		if p.key, err = unescape(key); err == nil {
			p.value, err = unescape(value)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", start, err)
		}
		// A real server also trims white space behind a value.
		p.value = strings.TrimSpace(p.value)
		list = append(list, p)
	}
	return list, nil
}

const propertySpace = " \t\f"

// continued reports whether the line ends with an unescaped backslash.
func continued(line string) bool {
	bare := strings.TrimRight(line, `\`)
	return (len(line)-len(bare))%2 == 1
}

// cutProperty splits a line into the key and the value, without the separator.
func cutProperty(line string) (key, value string) {
	end := len(line)
	for i := 0; i < len(line); i++ {
		if line[i] == '\\' {
			i++
			continue
		}
		if strings.IndexByte("=: \t\f", line[i]) >= 0 {
			end = i
			break
		}
	}
	key, value = line[:end], strings.TrimLeft(line[end:], propertySpace)
	if value != "" && (value[0] == '=' || value[0] == ':') {
		value = strings.TrimLeft(value[1:], propertySpace)
	}
	return key, value
}

func unescape(s string) (string, error) {
	if strings.IndexByte(s, '\\') < 0 {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		if i++; i == len(s) {
			break
		}
		switch s[i] {
		case 't':
			b.WriteByte('\t')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 'f':
			b.WriteByte('\f')
		case 'u':
			digits := s[i+1 : min(i+5, len(s))]
			n, err := strconv.ParseUint(digits, 16, 16)
			if err != nil || len(digits) < 4 {
				return "", fmt.Errorf(`%q: \u needs four hexadecimal digits; a backslash that is meant as one is written \\`, s)
			}
			b.WriteRune(rune(n))
			i += 4
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String(), nil
}
