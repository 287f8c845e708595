package session

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// CheckPath returns an error if path cannot name a znode: a path is absolute, and has no
// trailing slash, no empty or dotted components, and no characters that ZooKeeper
// forbids. The error wraps ErrInvalidPath and has the path and the defect.
func CheckPath(path string) error { return checkPath(path, false) }

// checkPath follows the server's own rule. If sequential is set, the last component may
// be empty, because the server appends a number to it.
func checkPath(path string, sequential bool) error {
	bad := func(why string) error { return fmt.Errorf("%w: %q %s", ErrInvalidPath, path, why) }
	switch {
	case path == "":
		return bad(`is empty, want an absolute path as "/app/locks"`)
	case path[0] != '/':
		return bad(`does not start with "/"`)
	case path == "/":
		return nil
	// Java decodes invalid bytes as U+FFFD, which the server refuses in a path.
	case !utf8.ValidString(path):
		return bad("is not valid UTF-8")
	}
	if strings.HasSuffix(path, "/") && !sequential {
		return bad(`ends with "/"`)
	}
	// Not Split: a slice for each path shows in a queue's throughput.
	for part := range strings.SplitSeq(strings.TrimSuffix(path[1:], "/"), "/") {
		switch part {
		case "":
			return bad("has an empty component")
		case ".", "..":
			return bad("has a relative component")
		}
	}
	for _, r := range path {
		// The server checks UTF-16 units, so surrogate pairs and the private use area
		// fall into its forbidden range.
		if r <= 0x1f || r >= 0x7f && r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0 {
			return bad(fmt.Sprintf("has the character %U, which ZooKeeper does not allow", r))
		}
	}
	return nil
}

// A chroot is the path that precedes all paths of a Manager, or "".
type chroot string

// full returns the path with the chroot in front.
func (c chroot) full(path string) string {
	switch {
	case c == "":
		return path
	case path == "/":
		return string(c)
	default:
		return string(c) + path
	}
}

// strip is the inverse of full. It returns a path outside the chroot unchanged.
func (c chroot) strip(path string) string {
	if c == "" {
		return path
	}
	if path == string(c) {
		return "/"
	}
	// For the chroot /app, the path /app2/x is outside.
	if below, ok := strings.CutPrefix(path, string(c)); ok && below != "" && below[0] == '/' {
		return below
	}
	return path
}

// join returns dir/name, also if dir is the root.
func join(dir, name string) string {
	if dir == "/" {
		return "/" + name
	}
	return dir + "/" + name
}

// split is the inverse of join.
func split(path string) (dir, name string) {
	i := strings.LastIndexByte(path, '/')
	if i == 0 {
		return "/", path[1:]
	}
	return path[:i], path[i+1:]
}
