package toolkit

import (
	"bytes"
	"encoding/json"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/go-zksync/toolkit"

// A pkg is the description of a package that go list prints.
type pkg struct {
	ImportPath string
	Standard   bool
	Imports    []string
	Deps       []string
}

func list(t *testing.T, args ...string) map[string]pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-deps", "-json=ImportPath,Standard,Imports,Deps"}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	pkgs := make(map[string]pkg)
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); err == io.EOF {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs[p.ImportPath] = p
	}
}

// within tells whether a package is dir, relative to the module, or below it.
func within(path, dir string) bool {
	dir = module + "/" + dir
	return path == dir || strings.HasPrefix(path, dir+"/")
}

// layers are the packages that users import, from the bottom up. Each may
// import those before it.
var layers = []string{"session", "watch", "zksync"}

// rooms are the internal packages, each with the packages that it may import besides
// the standard library. Only the package that a room belongs to, and the rooms that
// name it here, may import it.
var rooms = map[string][]string{
	"session/internal/wire": {goZookeeper},

	"zksync/internal/znode":        {goZookeeper, module + "/session"},
	"zksync/internal/line":         {goZookeeper, "go.uber.org/zap", module + "/session", module + "/zksync/internal/znode"},
	"zksync/internal/rendezvous":   {goZookeeper, module + "/session", module + "/zksync/internal/znode"},
	"zksync/internal/inspect":      {goZookeeper, module + "/session", module + "/zksync/internal/line", module + "/zksync/internal/rendezvous", module + "/zksync/internal/znode"},
	"zksync/internal/queue":        {goZookeeper, "go.uber.org/zap", module + "/session", module + "/zksync/internal/znode", module + "/zksync/internal/queue/commit", "golang.org/x/sync/errgroup"},
	"zksync/internal/queue/commit": {goZookeeper, "go.uber.org/zap", module + "/session", module + "/zksync/internal/znode"},

	"zksynctest/zkserver/internal/jute":    {},
	"zksynctest/zkserver/internal/tree":    {module + "/zksynctest/zkserver/internal/jute"},
	"zksynctest/zkserver/internal/journal": {module + "/zksynctest/zkserver/internal/jute", module + "/zksynctest/zkserver/internal/tree"},
}

const goZookeeper = "github.com/go-zookeeper/zk"

// misplacedRoom says which rule for rooms an import breaks; it returns an empty string
// if none.
func misplacedRoom(importer, imported string) string {
	if _, room, _ := strings.Cut(importer, module+"/"); strings.Contains(room, "/internal/") && withinAny(room, "session", "zksync", "zksynctest/zkserver") {
		may, ok := rooms[room]
		switch {
		case !ok:
			return "the table of rooms does not name " + room
		case strings.Contains(imported, ".") && !slices.Contains(may, imported):
			return "the table of rooms allows it " + strings.Join(may, ", ")
		}
		return ""
	}
	_, room, _ := strings.Cut(imported, module+"/")
	if owner, _, _ := strings.Cut(room, "/internal/"); rooms[room] != nil && importer != module+"/"+owner {
		return "only " + owner + " and its rooms may"
	}
	return ""
}

func withinAny(dir string, parents ...string) bool {
	return slices.ContainsFunc(parents, func(parent string) bool { return strings.HasPrefix(dir, parent+"/") })
}

// dependencies are the modules that come with the layers. zap brings multierr.
var dependencies = []string{"github.com/go-zookeeper/zk", "golang.org/x/sync", "go.uber.org/zap", "go.uber.org/multierr"}

// inDependency tells whether a package belongs to one of those modules.
func inDependency(path string) bool {
	for _, d := range dependencies {
		if path == d || strings.HasPrefix(path, d+"/") {
			return true
		}
	}
	return false
}

// misplaced says what is wrong with the packages' imports.
func misplaced(pkgs map[string]pkg) (wrong []string) {
	ours := func(path string) bool { return path == module || strings.HasPrefix(path, module+"/") }
	layer := func(path string) int {
		for i, dir := range layers {
			if within(path, dir) {
				return i
			}
		}
		return -1
	}
	accuse := func(p pkg, imported, why string) {
		wrong = append(wrong, p.ImportPath+" must not import "+imported+": "+why)
	}
	for _, p := range pkgs {
		if !ours(p.ImportPath) {
			continue
		}
		n := layer(p.ImportPath)
		for _, imported := range p.Imports {
			// The helpers under internal are for tests.
			if within(imported, "zksynctest") && !within(p.ImportPath, "zksynctest") && !within(p.ImportPath, "examples") && !within(p.ImportPath, "internal") {
				accuse(p, imported, "only tests and examples import it")
			}
			if within(imported, "internal") && !within(p.ImportPath, "internal") {
				accuse(p, imported, "only tests import it")
			}
			if n >= 0 && ours(imported) && (layer(imported) < 0 || layer(imported) > n) {
				accuse(p, imported, "the arrows go "+strings.Join(layers, " <- "))
			}
			if why := misplacedRoom(p.ImportPath, imported); why != "" {
				accuse(p, imported, why)
			}
		}
		for _, dep := range p.Deps {
			d, ok := pkgs[dep]
			standard := dep == "C" || dep == "unsafe" || ok && d.Standard
			switch {
			case standard:
			case within(p.ImportPath, "zksynctest/zkserver"):
				if !within(dep, "zksynctest/zkserver") {
					accuse(p, dep, "the embedded server stands on the standard library alone")
				}
			case n >= 0 && !ours(dep) && !inDependency(dep):
				accuse(p, dep, "it would reach users, who are promised no more than "+strings.Join(dependencies, ", "))
			}
		}
	}
	return wrong
}

// The packages that users import need go-zookeeper, golang.org/x/sync and zap, and nothing else, and imports go down
// the layers. Internal packages have rules of their own.
func TestImports(t *testing.T) {
	pkgs := list(t, "./...")
	for _, dir := range []string{"session", "session/internal/wire", "zksync", "zksynctest", "zksynctest/zkserver", "examples/quickstart"} {
		if _, ok := pkgs[module+"/"+dir]; !ok {
			t.Errorf("go list does not show %s: this test looks at the wrong place", dir)
		}
	}
	for _, w := range misplaced(pkgs) {
		t.Error(w)
	}
}

// Each rule of TestImports objects to an import that breaks it.
func TestImportRulesObject(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"session", module + "/zksync", "the arrows go"},
		{"session", module + "/watch", "the arrows go"},
		{"watch", module + "/zksync", "the arrows go"},
		{"session", module + "/zksynctest", "only tests and examples"},
		{"zksync/internal/x", module + "/internal/servers", "only tests"},
		{"zksync/internal/queue/commit", module + "/zksync/internal/rendezvous", "the table of rooms"},
		{"zksync/internal/znode", module + "/watch", "the table of rooms"},
		{"zksync/internal/znode", module + "/zksync", "the table of rooms"},
		{"zksync/internal/unlisted", module + "/session", "the table of rooms"},
		{"zksync", "example.org/other", "promised no more"},
		{"session", "github.com/go-zookeeper/zkother", "promised no more"},
		{"zksynctest/zkserver", "go.uber.org/zap", "standard library alone"},
		{"zksynctest/zkserver", module + "/session", "standard library alone"},
		{"zksync", module + "/session", ""},
		{"zksync", "context", ""},
		{"zksync", module + "/zksync/internal/znode", ""},
		{"zksync/internal/znode", module + "/session", ""},
		{"session", "go.uber.org/zap/zapcore", ""},
		{"watch", module + "/session/internal/wire", "only session and its rooms"},
		{"session/metrics", module + "/session/internal/wire", "only session and its rooms"},
		{"session/internal/wire", "go.uber.org/zap", "the table of rooms"},
		{"session/internal/wire", module + "/session", "the table of rooms"},
		{"session/internal/wire", "github.com/go-zookeeper/zk", ""},
		{"session", module + "/session/internal/wire", ""},
		{"zksync/internal/line", module + "/zksync/internal/rendezvous", "the table of rooms"},
		{"zksync/cmd/zklock", module + "/zksync/internal/line", "only zksync and its rooms"},
		{"zksynctest/zkserver/internal/jute", module + "/zksynctest/zkserver", "the table of rooms"},
		{"zksynctest/zkserver/internal/other", "context", "the table of rooms"},
		{"zksynctest/zkserver", module + "/zksynctest/zkserver/internal/jute", ""},
		{"zksynctest", module + "/session", ""},
		{"internal/servers", module + "/zksynctest", ""},
		{"examples/quickstart", module + "/zksynctest", ""},
	} {
		pkgs := map[string]pkg{
			"context":             {ImportPath: "context", Standard: true},
			module + "/" + c.from: {ImportPath: module + "/" + c.from, Imports: []string{c.to}, Deps: []string{c.to}},
		}
		wrong := strings.Join(misplaced(pkgs), "; ")
		if c.want == "" && wrong != "" || !strings.Contains(wrong, c.want) {
			t.Errorf("%s imports %s: objections %q, want %q", c.from, c.to, wrong, c.want)
		}
	}
}
