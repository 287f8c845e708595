package english

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// A Count is the number of words and the headless clauses of a package or a document.
type Count struct {
	Words   int
	Clauses []string // file:line: text
}

// Rate returns the number of headless clauses per 1,000 words.
func (c *Count) Rate() float64 {
	return float64(len(c.Clauses)) * 1000 / float64(max(1, c.Words))
}

func (c *Count) add(name string, text []Line) {
	words, found := Clauses(text)
	c.Words += words
	for _, clause := range found {
		c.Clauses = append(c.Clauses, fmt.Sprintf("%s:%d: %s", name, clause.Line, clause.Text))
	}
}

// Packages counts the comments of all Go files below a directory, test files included,
// by the path of their package.
func Packages(root string) (map[string]*Count, error) {
	counts := make(map[string]*Count)
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || len(d.Name()) > 1 && strings.Trim(d.Name(), ".") != "" && d.Name()[0] == '.'):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		source, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		texts, err := Comments(name, source)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		dir := path.Dir(rel)
		if counts[dir] == nil {
			counts[dir] = new(Count)
		}
		for _, text := range texts {
			counts[dir].add(rel, text)
		}
		return nil
	})
	return counts, err
}

// Document counts the prose of a page of Markdown.
func Document(name, source string) *Count {
	c := new(Count)
	c.add(name, Markdown(source))
	return c
}

// Write writes a table of counts to w.
func Write(w io.Writer, title string, counts map[string]*Count) {
	fmt.Fprintf(w, "%-40s %7s %8s %6s\n", title, "words", "clauses", "rate")
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		c := counts[name]
		fmt.Fprintf(w, "%-40s %7d %8d %6.1f\n", name, c.Words, len(c.Clauses), c.Rate())
	}
}
