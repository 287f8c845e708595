package realzk

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func touch(t *testing.T, elem ...string) string {
	t.Helper()
	path := filepath.Join(elem...)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// FindRuntime finds the release below ZOOKEEPER_HOME and the Java below JAVA_HOME.
func TestFindRuntimeTakesRelease(t *testing.T) {
	home, javaHome := t.TempDir(), t.TempDir()
	t.Setenv(envZooKeeperHome, home)
	t.Setenv(envJavaHome, javaHome)
	java := touch(t, javaHome, "bin", "java")
	if _, err := FindRuntime(); !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), home) {
		t.Errorf("an empty release: %v", err)
	}
	server, logger := touch(t, home, "lib", "zookeeper-3.9.3.jar"), touch(t, home, "lib", "logback-classic.jar")
	runtime, err := FindRuntime()
	if err != nil {
		t.Fatal(err)
	}
	if runtime.Java != java || !strings.Contains(runtime.ClassPath, server) || !strings.Contains(runtime.ClassPath, logger) {
		t.Errorf("found %+v", runtime)
	}
}

// FindRuntime fails with ErrMissing and names java if there is no Java.
func TestFindRuntimeWithoutJava(t *testing.T) {
	t.Setenv(envJavaHome, t.TempDir())
	t.Setenv("PATH", t.TempDir())
	if _, err := FindRuntime(); !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "java") {
		t.Errorf("without java: %v", err)
	}
}

// The class path for Debian's packages has the jars that exist, and ErrMissing is the error if ZooKeeper's is missing.
func TestDebianClassPath(t *testing.T) {
	dir := t.TempDir()
	if _, err := debianClassPath(dir); !errors.Is(err, ErrMissing) {
		t.Errorf("an empty directory: %v", err)
	}
	jars := []string{touch(t, dir, "zookeeper.jar"), touch(t, dir, "slf4j-simple.jar")}
	got, err := debianClassPath(dir)
	if err != nil || got != join(jars) {
		t.Errorf("got %s, %v", got, err)
	}
}
