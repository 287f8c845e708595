//go:build !unix || solaris || aix

package journal

import (
	"io/fs"
	"os"
)

// lockFile locks nothing here, since these systems have no flock: the user must not
// start two servers on one data file. [Config.DataFile] says so.
func lockFile(*os.File) error { return nil }

// hasLinks is about files that stay locked, which none is here.
func hasLinks(fs.FileInfo) bool { return false }
