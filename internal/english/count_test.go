package english

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Packages counts the test files of a package, too, and skips testdata.
func TestPackages(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"a/a.go":          "// Who waits is told.\npackage a\n",
		"a/a_test.go":     "// What is there.\npackage a_test\n",
		"a/testdata/x.go": "// Who is no Go",
		"b.go":            "// Package b is plain.\npackage b\n",
	} {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	counts, err := Packages(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(counts) != 2 || counts["a"].Words != 7 || len(counts["a"].Clauses) != 2 || counts["."].Rate() != 0 {
		t.Errorf("counts %+v", counts)
	}
	var table strings.Builder
	Write(&table, "package", counts)
	if rows := strings.Fields(table.String()); strings.Join(rows, " ") != "package words clauses rate . 4 0 0.0 a 7 2 285.7" {
		t.Errorf("table:\n%s", table.String())
	}
}
