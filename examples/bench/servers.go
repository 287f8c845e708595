package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// debianJars is where Debian keeps the jars of ZooKeeper and Curator.
const debianJars = "/usr/share/java"

// A server is a child process that listens on loopback.
type server struct {
	label   string
	command *exec.Cmd
	ended   chan struct{}
	address string
	log     string
}

// startServer runs a program and waits until it listens.
func startServer(ctx context.Context, label, dir, address, program string, args ...string) (*server, error) {
	s := &server{label: label, address: address, ended: make(chan struct{}), log: filepath.Join(dir, label+".log")}
	log, err := os.Create(s.log)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own
	s.command = exec.Command(program, args...)
	s.command.Dir, s.command.Stdout, s.command.Stderr = dir, log, log
	if err := s.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		s.command.Wait()
		close(s.ended)
	}()
	for {
		if conn, err := net.Dial("tcp", address); err == nil {
			conn.Close()
			return s, nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-s.ended:
			return nil, fmt.Errorf("%s has ended: %s", label, s.lastWords())
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), s.stop())
		}
	}
}

func (s *server) lastWords() string {
	text, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], " | ")
}

func (s *server) stop() error {
	s.command.Process.Kill() // it has nothing to keep
	select {
	case <-s.ended:
		return nil
	case <-time.After(10 * time.Second):
		return fmt.Errorf("%s, process %d, does not end", s.label, s.command.Process.Pid)
	}
}

// freePort returns a port that was free a moment ago.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// startZooKeeper starts one Apache ZooKeeper of Debian's package, which forces
// every write to disk as it does by default.
func startZooKeeper(ctx context.Context, dir string) (*server, error) {
	classPath, err := javaClassPath("zookeeper.jar", "slf4j-simple.jar")
	if err != nil {
		return nil, fmt.Errorf("%w (apt-get install -y zookeeper)", err)
	}
	address, err := freePort()
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(address)
	config := filepath.Join(dir, "zoo.cfg")
	text := strings.Join([]string{
		"dataDir=" + filepath.Join(dir, "zookeeper"),
		"clientPort=" + port, "clientPortAddress=127.0.0.1", "admin.enableServer=false",
		"tickTime=2000", "maxClientCnxns=0", "maxSessionTimeout=60000",
	}, "\n")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	return startServer(ctx, "zookeeper", dir, address, "java", "-Xmx1g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-cp", classPath, "org.apache.zookeeper.server.ZooKeeperServerMain", config)
}

func startEtcd(ctx context.Context, dir string) (*server, error) {
	program, err := exec.LookPath("etcd")
	if err != nil {
		return nil, fmt.Errorf("%w (apt-get install -y etcd-server)", err)
	}
	client, err := freePort()
	if err != nil {
		return nil, err
	}
	peer, err := freePort()
	if err != nil {
		return nil, err
	}
	return startServer(ctx, "etcd", dir, client, program, "--data-dir", filepath.Join(dir, "etcd"), "--log-level", "error",
		"--listen-client-urls", "http://"+client, "--advertise-client-urls", "http://"+client,
		"--listen-peer-urls", "http://"+peer, "--initial-advertise-peer-urls", "http://"+peer, "--initial-cluster", "default=http://"+peer)
}

func startRedis(ctx context.Context, dir string) (*server, error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("%w (apt-get install -y redis-server)", err)
	}
	address, err := freePort()
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(address)
	return startServer(ctx, "redis", dir, address, program, "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no")
}

// javaClassPath joins the jars, all of which must be there.
func javaClassPath(jars ...string) (string, error) {
	var paths []string
	for _, jar := range jars {
		path := filepath.Join(debianJars, jar)
		if _, err := os.Stat(path); err != nil {
			return "", err
		}
		paths = append(paths, path)
	}
	return strings.Join(paths, string(os.PathListSeparator)), nil
}

// startCurator compiles and runs the Java program in folder peers.
func startCurator(servers, folder string) (contender, error) {
	classPath, err := javaClassPath("curator-recipes.jar", "curator-framework.jar", "curator-client.jar", "zookeeper.jar", "guava.jar", "slf4j-simple.jar")
	if err != nil {
		return nil, fmt.Errorf("%w (apt-get install -y libcurator-recipes-java)", err)
	}
	return startProcess(curator, servers, "java", "-Xmx1g", "-Djute.maxbuffer=67108864", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
		"-cp", classPath, filepath.Join(folder, "Curator.java"))
}

func startKazoo(servers, folder string) (contender, error) {
	for _, python := range []string{"/usr/bin/python3", "python3"} {
		if exec.Command(python, "-c", "import kazoo").Run() == nil {
			return startProcess(kazoo, servers, python, filepath.Join(folder, "kazoo_peer.py"))
		}
	}
	return nil, errors.New("no Python 3 with kazoo (apt-get install -y python3-kazoo)")
}
