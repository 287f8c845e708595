package english

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
)

var (
	directive = regexp.MustCompile(`^//(line |[a-z0-9]+:[a-z0-9])`)
	output    = regexp.MustCompile(`(?i)^\s*(unordered )?output:`)
)

// Comments returns the prose of the comments of a Go file, a text for each group of
// comments. Directives, headings, code and the outputs of examples are left out.
func Comments(name string, source []byte) (texts [][]Line, err error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, group := range file.Comments {
		if text := prose(fset, group); len(text) > 0 {
			texts = append(texts, text)
		}
	}
	return texts, nil
}

func prose(fset *token.FileSet, group *ast.CommentGroup) (text []Line) {
	for _, comment := range group.List {
		if directive.MatchString(comment.Text) {
			continue
		}
		number := fset.Position(comment.Pos()).Line
		body := strings.TrimSuffix(comment.Text, "*/")[2:]
		for i, line := range strings.Split(body, "\n") {
			switch {
			case output.MatchString(line):
				return text
			case strings.HasPrefix(line, "\t") && comment.Text[1] == '/':
				line = "." // code, which ends a sentence
			case strings.TrimSpace(line) == "" || strings.HasPrefix(line, " # "):
				line = "."
			}
			text = append(text, Line{number + i, line})
		}
	}
	return text
}

var (
	fenced  = regexp.MustCompile("(?ms)^[ \t]*```.*?^[ \t]*```[ \t]*$")
	heading = regexp.MustCompile(`(?m)^#+ .*$`)
	link    = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
)

// Markdown returns the prose of a document. Code, headings and the addresses of links
// are left out.
func Markdown(source string) (text []Line) {
	blank := func(s string) string { return ".\n" + strings.Repeat("\n", max(0, strings.Count(s, "\n")-1)) }
	source = fenced.ReplaceAllStringFunc(source, func(s string) string {
		if !strings.Contains(s, "\n") {
			return "."
		}
		return blank(s)
	})
	source = heading.ReplaceAllString(source, ".")
	source = link.ReplaceAllString(source, "$1")
	for i, line := range strings.Split(source, "\n") {
		if strings.TrimSpace(line) == "" {
			line = "."
		} else if trimmed := strings.TrimLeft(line, " "); strings.HasPrefix(trimmed, "- ") || strings.HasPrefix(trimmed, "* ") {
			line = "." + trimmed[1:]
		}
		text = append(text, Line{i + 1, line})
	}
	return text
}
