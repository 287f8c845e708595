package realzk

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrMissing is wrapped when this machine cannot run ZooKeeper.
var ErrMissing = errors.New("no installation of Apache ZooKeeper found")

// Environment variables that say where things are.
const (
	envZooKeeperHome = "ZOOKEEPER_HOME"
	envJavaHome      = "JAVA_HOME"
)

// debianJars is where Debian and Ubuntu keep the jars of all packages.
const debianJars = "/usr/share/java"

// debianExtras are jars that zookeeper.jar of Debian does not pull in by its
// manifest: a logger, and the jars that Netty needs for TLS.
var debianExtras = []string{
	"slf4j-simple.jar",
	"netty-codec.jar",
	"netty-resolver.jar",
	"netty-transport-native-unix-common.jar",
}

// Runtime has the paths that are needed to run a server.
type Runtime struct {
	Java      string // the java program
	ClassPath string
}

// FindRuntime looks for Java and the jars of ZooKeeper, in the release unpacked in
// ZOOKEEPER_HOME, else in the Debian package. The error wraps ErrMissing and names
// the missing file or program.
func FindRuntime() (Runtime, error) {
	if !supported {
		return Runtime{}, fmt.Errorf("%w: this operating system has no signals to stop and continue a process", ErrMissing)
	}
	java, err := findJava()
	if err != nil {
		return Runtime{}, err
	}
	if home := os.Getenv(envZooKeeperHome); home != "" {
		classPath, err := releaseClassPath(home)
		return Runtime{Java: java, ClassPath: classPath}, err
	}
	classPath, err := debianClassPath(debianJars)
	return Runtime{Java: java, ClassPath: classPath}, err
}

func findJava() (string, error) {
	if home := os.Getenv(envJavaHome); home != "" {
		java := filepath.Join(home, "bin", "java")
		if _, err := os.Stat(java); err == nil {
			return java, nil
		}
	}
	java, err := exec.LookPath("java")
	if err != nil {
		return "", fmt.Errorf("%w: no java program in %s or PATH", ErrMissing, envJavaHome)
	}
	return java, nil
}

// releaseClassPath takes all jars of an unpacked release. Up to 3.4 the
// server's own jar lay beside lib.
func releaseClassPath(home string) (string, error) {
	var jars []string
	for _, pattern := range []string{"zookeeper-*.jar", "lib/*.jar"} {
		found, err := filepath.Glob(filepath.Join(home, pattern))
		if err != nil {
			return "", fmt.Errorf("%w: %s=%s: %w", ErrMissing, envZooKeeperHome, home, err)
		}
		jars = append(jars, found...)
	}
	for _, jar := range jars {
		if strings.HasPrefix(filepath.Base(jar), "zookeeper-") {
			return join(jars), nil
		}
	}
	return "", fmt.Errorf("%w: %s=%s has no lib/zookeeper-*.jar", ErrMissing, envZooKeeperHome, home)
}

func debianClassPath(dir string) (string, error) {
	main := filepath.Join(dir, "zookeeper.jar")
	if _, err := os.Stat(main); err != nil {
		return "", fmt.Errorf("%w: %s is not set, and there is no %s", ErrMissing, envZooKeeperHome, main)
	}
	jars := []string{main}
	for _, name := range debianExtras {
		jar := filepath.Join(dir, name)
		if _, err := os.Stat(jar); err == nil {
			jars = append(jars, jar)
		}
	}
	return join(jars), nil
}

func join(jars []string) string { return strings.Join(jars, string(os.PathListSeparator)) }
