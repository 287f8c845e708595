package znode

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/go-zksync/toolkit/session"
)

// Join returns the path of a child of dir.
func Join(dir, name string) string {
	if dir == "/" {
		return "/" + name
	}
	return dir + "/" + name
}

// Dir returns the path of the parent.
func Dir(path string) string { return path[:max(1, strings.LastIndexByte(path, '/'))] }

// Base returns the last name of a path.
func Base(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// ProtectedPrefix begins a name that session.Protect has made. A GUID follows it.
const ProtectedPrefix = "_c_"

// GUIDForm is as long as every GUID.
const GUIDForm = "00000000-0000-0000-0000-000000000000"

// NewGUID returns a GUID.
func NewGUID() string {
	// From the session, so that a GUID has the same form everywhere: see IsUUID and GUIDForm.
	protected := session.Protect("/")
	return protected[len(protected)-len(GUIDForm)-1 : len(protected)-1]
}

// IsUUID reports whether s is a UUID, with dashes or, as kazoo writes it, without.
func IsUUID(s string) bool {
	for i, c := range []byte(s) {
		hex := c >= '0' && c <= '9' || c >= 'a' && c <= 'f'
		dash := c == '-' && len(s) == 36 && (i == 8 || i == 13 || i == 18 || i == 23)
		if !hex && !dash {
			return false
		}
	}
	return len(s) == 36 || len(s) == 32
}

// maxLabel is the length of the data that Label returns.
const maxLabel = 64

// Label returns the data of another client's znode for a log line or an error: cut, and quoted if it
// is not printable. It keeps no reference to data.
func Label(data []byte) string {
	text := string(data[:min(len(data), maxLabel)])
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		text = strconv.Quote(text)
	}
	if len(data) > maxLabel {
		text += "..."
	}
	return text
}
