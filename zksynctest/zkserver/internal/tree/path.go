package tree

import (
	"strconv"
	"strings"
)

// validPath applies the rules for the path of a znode. Bytes that are not UTF-8 read as U+FFFD, which is not allowed either.
func validPath(path string) bool {
	if path == "/" {
		return true
	}
	if path == "" || path[0] != '/' || path[len(path)-1] == '/' {
		return false
	}
	for name := range strings.SplitSeq(path[1:], "/") {
		if name == "" || name == "." || name == ".." {
			return false
		}
	}
	for _, r := range path {
		switch {
		case r < 0x20, r >= 0x7f && r <= 0x9f,
			r >= 0xd800 && r <= 0xf8ff, // private use; surrogates do not occur in a Go string
			r >= 0xfff0:                // specials, and the runes that need surrogates in UTF-16
			return false
		}
	}
	return true
}

// splitPath is the parent and the name of path, which must have a slash. The
// parent of a top-level node is "", which the tree knows as another name of the
// root.
func splitPath(path string) (parent, name string, ok bool) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 || strings.IndexByte(path, 0) >= 0 {
		return "", "", false
	}
	return path[:i], path[i+1:], true
}

// sequenceName appends the counter in the form of Java's %010d.
func sequenceName(path string, n int32) string {
	var digits [12]byte
	num := strconv.AppendInt(digits[:0], int64(n), 10)
	b := make([]byte, 0, len(path)+11)
	b = append(b, path...)
	width := 10
	if n < 0 {
		b, num, width = append(b, '-'), num[1:], 9
	}
	for range width - len(num) {
		b = append(b, '0')
	}
	return string(append(b, num...))
}
