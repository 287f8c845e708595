package znode

import "strings"

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
