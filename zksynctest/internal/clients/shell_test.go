package clients

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// shellTime bounds a run of the shell.
const shellTime = 2 * time.Minute

// shell returns the path of the shell of Apache ZooKeeper, or skips the test.
func shell(t *testing.T) string {
	t.Helper()
	dir := "/usr/share/zookeeper"
	if home := os.Getenv("ZOOKEEPER_HOME"); home != "" {
		dir = home
	}
	path := filepath.Join(dir, "bin", "zkCli.sh")
	if _, err := os.Stat(path); err != nil {
		missing(t, err.Error(), "apt-get install -y zookeeper, or unpack a release and set ZOOKEEPER_HOME")
	}
	return path
}

// transcript has the output of the shell: results, events of watches (which a separate
// thread of the shell prints, at any time), and remarks such as errors.
type transcript struct{ results, events, remarks string }

// runShell makes the shell run the given commands or its arguments.
func runShell(t *testing.T, path, addr, commands string, args ...string) transcript {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), shellTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, append([]string{"-server", addr}, args...)...)
	cmd.Env = append(os.Environ(), "TZ=UTC", "LC_ALL=C.UTF-8")
	cmd.Stdin = strings.NewReader(commands)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%s: %v", path, err)
	}
	var said transcript
	for line := range strings.Lines(strings.ReplaceAll(string(out), addr, "ADDRESS")) {
		switch line = times.ReplaceAllString(line, "$1 = a time"); {
		case line == "\n", line == "WATCHER::\n":
		case strings.HasPrefix(line, "WatchedEvent "):
			said.events += line
		default:
			said.results += sortedList(line)
		}
	}
	// The shell ends its process while another thread of it prints the last event, so that
	// this event may be missing.
	said.events = strings.TrimSuffix(said.events, "WatchedEvent state:Closed type:None path:null\n")
	said.events = sortRemoved(said.events)
	for line := range strings.Lines(strings.ReplaceAll(stderr.String(), addr, "ADDRESS")) {
		if !logged.MatchString(line) {
			said.remarks += line
		}
	}
	return said
}

// sortRemoved sorts the events of one removewatches, because their order is the order of a Java
// map.
func sortRemoved(events string) string {
	lines := strings.SplitAfter(events, "\n")
	for from := 0; from < len(lines); {
		to := from
		for to < len(lines) && strings.Contains(lines[to], "WatchRemoved ") {
			to++
		}
		slices.Sort(lines[from:to])
		from = to + 1
	}
	return strings.Join(lines, "")
}

// sortedList sorts a line that is a list, because the order of some lists is the order of a Java
// set.
func sortedList(line string) string {
	inner, ok := strings.CutPrefix(strings.TrimSpace(line), "[")
	inner, closed := strings.CutSuffix(inner, "]")
	if !ok || !closed {
		return line
	}
	names := strings.Split(inner, ", ")
	slices.Sort(names)
	return "[" + strings.Join(names, ", ") + "]\n"
}

var (
	times  = regexp.MustCompile(`^([cm]time) = .*`)
	logged = regexp.MustCompile(`^(\S+ \S+ )?\[.*\] (TRACE|DEBUG|INFO|WARN|ERROR) |^SLF4J|^log4j|^\tat |^[0-9-]+ [0-9:,.]+ `)
)

// The shell of Apache ZooKeeper prints the same on the embedded server as on a real one, except for times and
// addresses.
func TestShell(t *testing.T) {
	t.Parallel()
	path := shell(t)
	commands, err := os.ReadFile(filepath.Join("testdata", "shell.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var said []transcript
	onBoth(t, func(t *testing.T, addr string) {
		session := runShell(t, path, addr, string(commands))
		single := runShell(t, path, addr, "", "get", "-s", "/a")
		single.events = "" // the shell may end before its other thread prints that it is connected
		said = append(said, session, single)
		for _, want := range []string{"/a/s-0000000002", "dataLength = 4", "'digest,'u:Jq7wMyA/w2Vd5WIDAKdu4OIIFEQ=", "[/a/e, /a/se-0000000003]", "Auth scheme: User"} {
			if !strings.Contains(session.results, want) {
				t.Errorf("the shell does not say %q:\n%s", want, session.results)
			}
		}
		for _, want := range []string{"type:NodeDataChanged path:/deep/er/still", "type:NodeChildrenChanged path:/watched", "type:PersistentWatchRemoved"} {
			if !strings.Contains(session.events, want) {
				t.Errorf("the shell does not tell of %q:\n%s", want, session.events)
			}
		}
		if !strings.Contains(session.remarks, "Created /a") {
			t.Errorf("the shell does not say that it created /a:\n%s", session.remarks)
		}
		if !strings.Contains(single.results, "four\ncZxid = 0x2\n") {
			t.Errorf("the shell does not say what /a has:\n%s", single.results)
		}
	})
	if len(said) < 4 {
		return // a subtest was skipped
	}
	for i := range 2 {
		for _, c := range []struct{ what, zkserver, real string }{
			{"results", said[i].results, said[2+i].results},
			{"events", said[i].events, said[2+i].events},
			{"remarks", said[i].remarks, said[2+i].remarks},
		} {
			t.Run(c.what, func(t *testing.T) { sameLines(t, c.zkserver, c.real) })
		}
	}
}
