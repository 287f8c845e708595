package toolkit

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// documents are the pages for people.
func documents(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob("docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages in docs: %v", err)
	}
	for i := range pages {
		pages[i] = filepath.ToSlash(pages[i])
	}
	return append(pages, "README.md", "CONTRIBUTING.md", "CHANGELOG.md")
}

func readDocument(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var fence = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")

// fenced returns the blocks of one language.
func fenced(document, language string) (blocks []string) {
	for _, m := range fence.FindAllStringSubmatch(document, -1) {
		if m[1] == language {
			blocks = append(blocks, m[2])
		}
	}
	return blocks
}

// The README's code is compiled, because it is the code of the examples.
func TestReadmeCodeIsThatOfTheExamples(t *testing.T) {
	files, err := filepath.Glob("examples/*/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	var code []string
	for _, name := range files {
		code = append(code, readDocument(t, name))
	}
	blocks := fenced(readDocument(t, "README.md"), "go")
	if len(blocks) < 2 {
		t.Errorf("%d blocks of Go, want the service and its test", len(blocks))
	}
next:
	for _, block := range blocks {
		for _, c := range code {
			if strings.Contains(c, block) {
				continue next
			}
		}
		t.Errorf("this code of the README is in no file of the examples; copy it from there:\n%s", block)
	}
}

// The Go code of the other documents is compiled beside them.
func TestCodeOfDocumentsIsCompiled(t *testing.T) {
	code := readDocument(t, "docs/migrating_test.go")
	blocks := fenced(readDocument(t, "docs/migrating.md"), "go")
	if len(blocks) == 0 {
		t.Error("no blocks of Go")
	}
	for _, block := range blocks {
		if !strings.Contains(code, block) {
			t.Errorf("this code of docs/migrating.md is not in docs/migrating_test.go:\n%s", block)
		}
	}
}

// Each statement of docs/migrating.md about other clients has a test in zksynctest/interop.
func TestInteropIsShown(t *testing.T) {
	files, err := filepath.Glob("zksynctest/interop/*_test.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests: %v", err)
	}
	var tests string
	for _, name := range files {
		tests += readDocument(t, name)
	}
	page := readDocument(t, "docs/migrating.md")
	named := regexp.MustCompile("`(Test[A-Za-z]+)`").FindAllStringSubmatch(page, -1)
	if len(named) == 0 {
		t.Error("no tests are named")
	}
	for _, m := range named {
		if !strings.Contains(tests, "\nfunc "+m[1]+"(t *testing.T)") {
			t.Errorf("docs/migrating.md speaks of %s, which is not there", m[1])
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)`).FindAllStringSubmatch(tests, -1) {
		if m[1] != "TestMain" && m[1] != "TestWitness" && !strings.Contains(page, "`"+m[1]+"`") {
			t.Errorf("docs/migrating.md does not say what %s shows", m[1])
		}
	}
}

// The first commands of the README are the commands that CI runs.
func TestReadmeCommands(t *testing.T) {
	blocks := fenced(readDocument(t, "README.md"), "sh")
	want := "go run ./examples/quickstart\ngo test ./...\n"
	if len(blocks) == 0 || blocks[0] != want {
		t.Errorf("the first commands of the README are %q, want %q", blocks, want)
	}
	run := regexp.MustCompile(`go run (\./\S+)`)
	for _, block := range blocks {
		for _, m := range run.FindAllStringSubmatch(block, -1) {
			if _, err := os.Stat(filepath.Join(m[1], "main.go")); err != nil {
				t.Errorf("%q: %v", m[0], err)
			}
		}
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	noise   = regexp.MustCompile(`[^\pL\pN -]`)
)

// anchors returns the link anchors of a document's headings.
func anchors(document string) map[string]bool {
	found := make(map[string]bool)
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(document, ""), -1) {
		found[strings.ReplaceAll(noise.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return found
}

// Every link of the documents leads to a file or a heading that exists.
func TestLinks(t *testing.T) {
	for _, name := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(readDocument(t, name), ""), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.HasPrefix(target, "https://") {
				continue
			}
			if target == "" {
				target = name
			} else {
				target = path.Join(path.Dir(name), target)
			}
			if _, err := os.Stat(filepath.FromSlash(target)); err != nil {
				t.Errorf("%s: the link %q leads nowhere: %v", name, m[1], err)
			} else if anchor != "" && !anchors(readDocument(t, target))[anchor] {
				t.Errorf("%s: the link %q names no heading of %s", name, m[1], target)
			}
		}
	}
}

// Every make target that the documents name exists.
func TestMakeTargets(t *testing.T) {
	makefile := readDocument(t, "Makefile")
	for _, name := range documents(t) {
		for _, m := range regexp.MustCompile("`make ([a-z-]+)`").FindAllStringSubmatch(readDocument(t, name), -1) {
			if !strings.Contains(makefile, "\n"+m[1]+":") {
				t.Errorf("%s: the Makefile has no target %s", name, m[1])
			}
		}
	}
}

// Every line that a program of a user may find in its log is explained on the page for
// operators, which stays short enough to be read as a whole. Breaks if a row of the table
// is left out.
func TestOperatingNamesEveryLogLine(t *testing.T) {
	page := readDocument(t, "docs/operating.md")
	if len(page) > 15_000 {
		t.Errorf("docs/operating.md has %d bytes, want 15,000 at most", len(page))
	}
	line := regexp.MustCompile(`(?:(?:\blog|Logger\(\))\.(?:Info|Warn|Error)\(\s*|\.log\([^"\n]*zap\.(?:Info|Warn|Error)Level, )"([^"]+)"`)
	found := 0
	for _, dir := range []string{"session", "watch", "zksync"} {
		err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && d.Name() == "cmd": // programs have no logger
				return filepath.SkipDir
			case d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go"):
				return nil
			}
			for _, m := range line.FindAllStringSubmatch(readDocument(t, file), -1) {
				found++
				if !strings.Contains(page, "`"+m[1]+"`") {
					t.Errorf("docs/operating.md does not explain the log line %q of %s", m[1], file)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < 9 {
		t.Errorf("%d log lines in the code, want more: the pattern finds none", found)
	}
}

// Every function and test that docs/architecture.md and docs/queue.md name exists in the file that
// the page names with it, and the pages stay short. Breaks if a function is renamed in one of the two.
func TestArchitectureNamesExistingFunctions(t *testing.T) {
	for _, p := range []struct {
		name        string
		most, names int
	}{{"docs/architecture.md", 12_000, 50}, {"docs/queue.md", 8_000, 6}} {
		page := readDocument(t, p.name)
		if len(page) > p.most {
			t.Errorf("%s has %d bytes, want %d at most", p.name, len(page), p.most)
		}
		named := regexp.MustCompile(`(?m)^(\S+\.go) (.*)$`).FindAllStringSubmatch(strings.Join(fenced(page, "text"), ""), -1)
		for _, m := range regexp.MustCompile(`\[(Test[^]]+)\]\(\.\./([^)]+)\)`).FindAllStringSubmatch(page, -1) {
			named = append(named, []string{m[0], m[2], strings.ReplaceAll(m[1], ",", "")})
		}
		if len(named) < p.names {
			t.Errorf("%s: %d files with functions or tests, want more: the patterns find too little", p.name, len(named))
		}
		for _, m := range named {
			functions, owner := functionsOf(t, m[1]), ""
			for _, name := range strings.Fields(m[2]) {
				if strings.HasPrefix(name, ".") {
					name = owner + name
				}
				owner, _, _ = strings.Cut(name, ".")
				if !functions[name] {
					t.Errorf("%s names %s, which is not in %s", p.name, name, m[1])
				}
			}
		}
	}
}

// functionsOf returns the functions of the file whose path ends with name: Type.Method for
// methods, Function and package.Function for others.
func functionsOf(t *testing.T, name string) map[string]bool {
	t.Helper()
	var files []string
	for _, pattern := range []string{name, "*/internal/" + name, "*/internal/*/" + name} {
		found, _ := filepath.Glob(pattern) // the patterns are valid
		files = append(files, found...)
	}
	if len(files) != 1 {
		t.Fatalf("the page names %s, which stands for the files %q, want one", name, files)
	}
	file, err := parser.ParseFile(token.NewFileSet(), files[0], nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]bool)
	for _, d := range file.Decls {
		switch f, ok := d.(*ast.FuncDecl); {
		case !ok:
		case f.Recv == nil:
			found[f.Name.Name], found[file.Name.Name+"."+f.Name.Name] = true, true
		default:
			owner, _, _ := strings.Cut(types.ExprString(f.Recv.List[0].Type), "[") // without type parameters
			found[strings.TrimPrefix(owner, "*")+"."+f.Name.Name] = true
		}
	}
	return found
}
