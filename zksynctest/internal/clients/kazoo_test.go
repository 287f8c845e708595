package clients

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// kazooTime bounds a run of the Python program.
const kazooTime = 3 * time.Minute

// python returns an interpreter that has kazoo, or skips the test. The first interpreter in PATH is
// often not the system's interpreter, and distributions package kazoo for the system's interpreter.
func python(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"/usr/bin/python3", "python3", "python"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if exec.CommandContext(t.Context(), path, "-c", "import kazoo").Run() == nil {
			return path
		}
	}
	missing(t, "no Python with kazoo", "apt-get install -y python3-kazoo")
	return ""
}

// missing skips a test that lacks a program, or fails it if all programs are required.
func missing(t *testing.T, what, remedy string) {
	t.Helper()
	if os.Getenv(zksynctest.RequireRealEnv) == "1" {
		t.Fatalf("%s (%s=1 makes this an error); install it by: %s", what, zksynctest.RequireRealEnv, remedy)
	}
	line := strings.Repeat("*", 78)
	t.Skipf("\n%s\nNOT TESTED WITH A FOREIGN CLIENT: %s\nInstall it by: %s\n%s=1 makes this skip an error.\n%s",
		line, what, remedy, zksynctest.RequireRealEnv, line)
}

// onBoth runs a test on a new embedded server and on a new real server. Both servers allow TTL
// nodes and answer all four-letter words.
func onBoth(t *testing.T, test func(t *testing.T, addr string)) {
	t.Helper()
	t.Run("zkserver", func(t *testing.T) {
		test(t, zksynctest.Start(t, zksynctest.WithConfig(zkserver.Config{
			ExtendedTypes:   true,
			FourLetterWords: []string{"*"},
		})).Addr())
	})
	t.Run("ZooKeeper", func(t *testing.T) {
		test(t, zksynctest.RealZooKeeper(t, 1, zksynctest.RealProperty("extendedTypesEnabled", "true")).DirectAddr(1))
	})
}

// The recipes of kazoo work on the embedded server. A file has the expected output.
func TestKazoo(t *testing.T) {
	t.Parallel()
	interpreter := python(t)
	want, err := os.ReadFile(filepath.Join("testdata", "recipes.want"))
	if err != nil {
		t.Fatal(err)
	}
	onBoth(t, func(t *testing.T, addr string) {
		ctx, cancel := context.WithTimeout(t.Context(), kazooTime)
		defer cancel()
		cmd := exec.CommandContext(ctx, interpreter, filepath.Join("testdata", "recipes.py"), addr)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("%v\n%s", err, stderr.String())
		}
		sameLines(t, string(out), string(want))
	})
}

// sameLines compares texts and shows the first line that differs.
func sameLines(t *testing.T, got, want string) {
	t.Helper()
	gotLines, wantLines := strings.Split(strings.TrimSpace(got), "\n"), strings.Split(strings.TrimSpace(want), "\n")
	for i := range max(len(gotLines), len(wantLines)) {
		var g, w string
		if i < len(gotLines) {
			g = gotLines[i]
		}
		if i < len(wantLines) {
			w = wantLines[i]
		}
		if g != w {
			t.Errorf("line %d is\n\t%s\nwant\n\t%s\nin all:\n%s", i+1, g, w, got)
			return
		}
	}
}
