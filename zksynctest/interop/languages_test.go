package interop

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/internal/realzk"
)

// A language is a programming language in which peers are written.
type language struct {
	name    string
	command func() (*exec.Cmd, error)

	mu     sync.Mutex
	shared *peer
}

var (
	java   = &language{name: "Java", command: javaCommand}
	python = &language{name: "Python", command: pythonCommand}
	golang = &language{name: "Go", command: goCommand}
)

var languages = []*language{java, python, golang}

var errMissing = errors.New("not here")

const debianJars = "/usr/share/java"

// jars has the jars of the recipes; their manifests name the jars that they need.
var jars = []string{
	"curator-recipes.jar", "zookeeper-recipes-lock.jar", "zookeeper-recipes-election.jar", "zookeeper-recipes-queue.jar", "slf4j-nop.jar",
}

// javaClasses returns the directory of the compiled Java peer.
var javaClasses = sync.OnceValues(compileJava)

func javaClassPath() (string, error) {
	var paths []string
	for _, jar := range jars {
		path := filepath.Join(debianJars, jar)
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("%w: %w", errMissing, err)
		}
		paths = append(paths, path)
	}
	return strings.Join(paths, string(os.PathListSeparator)), nil
}

// compileJava uses the compiler module of the Java runtime, which Debian also ships with the
// headless runtime, so that no javac is necessary.
func compileJava() (string, error) {
	runtime, err := realzk.FindRuntime()
	if err != nil {
		return "", fmt.Errorf("%w: %w", errMissing, err)
	}
	classPath, err := javaClassPath()
	if err != nil {
		return "", err
	}
	sources, err := filepath.Glob("testdata/java/*.java")
	if err != nil || len(sources) == 0 {
		return "", fmt.Errorf("no sources of the peer in Java: %w", err)
	}
	dir, err := os.MkdirTemp("", "interop")
	if err != nil {
		return "", err
	}
	args := []string{"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-m", "jdk.compiler/com.sun.tools.javac.Main", "-proc:none", "-implicit:none", "-cp", classPath, "-d", dir}
	if out, err := exec.Command(runtime.Java, append(args, sources...)...).CombinedOutput(); err != nil {
		return "", errors.Join(fmt.Errorf("compile the peer in Java: %w\n%s", err, out), os.RemoveAll(dir))
	}
	return dir, nil
}

func javaCommand() (*exec.Cmd, error) {
	dir, err := javaClasses()
	if err != nil {
		return nil, err
	}
	runtime, err := realzk.FindRuntime()
	if err != nil {
		return nil, err
	}
	classPath, err := javaClassPath()
	if err != nil {
		return nil, err
	}
	return exec.Command(runtime.Java, "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
		"-cp", dir+string(os.PathListSeparator)+classPath, "Peer"), nil
}

// debianPython is the Python that has Debian's packages, which another python3 in PATH may lack.
const debianPython = "/usr/bin/python3"

var pythonPath = sync.OnceValues(func() (string, error) {
	var errs []error
	for _, path := range []string{debianPython, "python3"} {
		out, err := exec.Command(path, "-c", "import kazoo.client").CombinedOutput()
		if err == nil {
			return path, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w: %s", path, err, out))
	}
	return "", fmt.Errorf("%w: no Python with kazoo: %w", errMissing, errors.Join(errs...))
})

func pythonCommand() (*exec.Cmd, error) {
	path, err := pythonPath()
	if err != nil {
		return nil, err
	}
	return exec.Command(path, "-B", "testdata/peer.py"), nil
}

func goCommand() (*exec.Cmd, error) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), peerEnv+"=1")
	return cmd, nil
}

// process starts a separate process for one test, which may kill it.
func (l *language) process(t testing.TB) *peer {
	t.Helper()
	p, err := l.launch()
	l.need(t, err)
	t.Cleanup(func() {
		select {
		case <-p.done:
			return
		default:
		}
		if err := p.end(); err != nil {
			t.Errorf("the peer in %s: %v", l.name, err)
		}
	})
	return p
}

// peer returns the process that the tests share.
func (l *language) peer(t testing.TB) *peer {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shared == nil {
		p, err := l.launch()
		l.need(t, err)
		l.shared = p
	}
	return l.shared
}

func (l *language) launch() (*peer, error) {
	cmd, err := l.command()
	if err != nil {
		return nil, err
	}
	return launch(cmd)
}

const installHint = "Install them by: apt-get install -y zookeeper libcurator-recipes-java python3-kazoo"

// need skips the test if a language is missing, or fails it if the language is required.
func (l *language) need(t testing.TB, err error) {
	t.Helper()
	switch {
	case err == nil:
	case !errors.Is(err, errMissing) || os.Getenv(zksynctest.RequireRealEnv) == "1":
		t.Fatalf("no peer in %s: %v\n%s\n(%s=1 makes this an error)", l.name, err, installHint, zksynctest.RequireRealEnv)
	default:
		t.Skipf("\n%[1]s\nNOT TESTED WITH %[2]s: %[3]v\n%[4]s\n%[5]s=1 makes this skip an error.\n%[1]s",
			strings.Repeat("*", 78), strings.ToUpper(l.name), err, installHint, zksynctest.RequireRealEnv)
	}
}

func stopSharedPeers() {
	for _, l := range languages {
		l.mu.Lock()
		if l.shared != nil {
			if err := l.shared.end(); err != nil {
				fmt.Fprintf(os.Stderr, "the peer in %s: %v\n", l.name, err)
			}
			l.shared = nil
		}
		l.mu.Unlock()
	}
	if dir, err := javaClasses(); err == nil {
		_ = os.RemoveAll(dir)
	}
}
