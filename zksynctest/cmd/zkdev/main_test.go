package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/goleak"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// asServer makes the test binary run as zkdev, so that a test can kill it.
const asServer = "ZKSYNC_TEST_ZKDEV"

func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		main()
	}
	goleak.VerifyTestMain(m)
}

// process is a zkdev in its own process.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	addr   string
	output *bufio.Reader
}

func launch(t *testing.T, args ...string) *process {
	t.Helper()
	return launchBy(t, `exec "$0" "$@"`, args...)
}

// launchBy starts zkdev with a shell command line.
func launchBy(t *testing.T, line string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command("sh", append([]string{"-c", line, os.Args[0]}, args...)...)}
	p.cmd.Env = append(os.Environ(), asServer+"=1")
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
	p.output = bufio.NewReader(stderr)
	_, addr, _ := strings.Cut(p.await("listening on "), "listening on ")
	p.addr = strings.TrimSpace(addr)
	return p
}

// await reads the output up to the first line that contains the text, and returns that line.
func (p *process) await(text string) string {
	p.t.Helper()
	for {
		line, err := p.output.ReadString('\n')
		if strings.Contains(line, text) {
			return line
		}
		if err != nil {
			p.t.Fatalf("it ended before it said %q: %q", text, line)
		}
	}
}

// The process survives when it has no file descriptors left for connections, and serves again when
// it has some: 150 connections share 100 descriptors.
func TestNoFileDescriptorsLeft(t *testing.T) {
	p := launchBy(t, "ulimit -n 100; exec \"$0\" \"$@\"", "-listen", "127.0.0.1:0")
	var conns []net.Conn
	for range 150 {
		c, err := net.Dial("tcp", p.addr)
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	p.await("too many open files")
	for _, c := range conns {
		c.Close()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	m, err := session.Connect(ctx, p.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if _, err := m.Session(ctx); err != nil {
		t.Fatal(err)
	}
	m.Close() // while a server answers: Close without one waits for a second
	if said, status := p.end(syscall.SIGTERM); status != 0 {
		t.Errorf("status %d, %q", status, said)
	}
}

// end sends a signal and returns the output that no await has read, and the exit status.
func (p *process) end(sig os.Signal) (string, int) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
	said, err := io.ReadAll(p.output)
	if err != nil {
		p.t.Error(err)
	}
	_ = p.cmd.Wait()
	return string(said), p.cmd.ProcessState.ExitCode()
}

// The data that a client wrote, and its session with its ephemeral, survive kill -9 of zkdev.
func TestDataOutlivesKill(t *testing.T) {
	data := filepath.Join(t.TempDir(), "zk.data")
	p := launch(t, "-listen", "127.0.0.1:0", "-data", data)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	m, err := session.Connect(ctx, p.addr, session.WithTimeout(30*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s, err := m.Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(ctx, "/kept", []byte("data"), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(ctx, "/mine", nil, zk.FlagEphemeral); err != nil {
		t.Fatal(err)
	}
	p.end(syscall.SIGKILL)

	p = launch(t, "-listen", p.addr, "-data", data)
	if b, _, err := s.Get(ctx, "/kept"); err != nil || string(b) != "data" {
		t.Errorf("%q, %v", b, err)
	}
	if ok, st, err := s.Exists(ctx, "/mine"); err != nil || !ok || st.EphemeralOwner != s.ID() {
		t.Errorf("the ephemeral: %v, %+v, %v", ok, st, err)
	}
	if again, err := m.Session(ctx); err != nil || again.ID() != s.ID() {
		t.Errorf("another session: %v", err)
	}
	m.Close() // while a server answers: Close without one waits for a second
	if said, status := p.end(syscall.SIGTERM); status != 0 || !strings.Contains(said, "stopping") {
		t.Errorf("status %d, %q", status, said)
	}
}

// The error for a wrong flag, configuration or data file names the mistake.
func TestMistakes(t *testing.T) {
	damaged := filepath.Join(t.TempDir(), "zk.data")
	if err := os.WriteFile(damaged, []byte("something else"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := filepath.Join(t.TempDir(), "zoo.cfg")
	if err := os.WriteFile(cfg, []byte("ticktime=2000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	three, one := filepath.Join(t.TempDir(), "three.cfg"), filepath.Join(t.TempDir(), "one.cfg")
	if err := os.WriteFile(three, []byte("clientPort=2181\nserver.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(one, []byte("clientPort=2181\nserver.1=a:1:2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args   string
		status int
		says   string
	}{
		{"-data " + damaged, 1, damaged},
		{"-config " + cfg, 2, "did you mean tickTime?"},
		{"-fsync", 2, "-fsync needs -data"},
		{"zoo.cfg", 2, `"zoo.cfg" is not an option`},
		{"-listen 2181", 2, "-listen 2181"},
		{"-listen 127.0.0.1:zk", 2, "must be a number"},
		{"-4lw ruok,sttat", 1, `"sttat"`},
		{"-config " + three, 2, "(server.1, server.2, server.3), and those of several processes know nothing of each other: start one process with -ensemble"},
		{"-config " + one + " -ensemble", 2, "-ensemble needs a -config"},
		{"-ensemble", 2, "-ensemble needs a -config"},
		{"-nonsense", 2, "-nonsense"},
		{"-h", 0, "-listen"},
	} {
		var out bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // zkdev serves if it overlooks the mistake
		if status := run(ctx, strings.Fields(c.args), &out); status != c.status || !strings.Contains(out.String(), c.says) {
			t.Errorf("%s: status %d, %s", c.args, status, out.String())
		}
		cancel()
	}
}

// The members of an ensemble listen on their own client ports if these differ, on consecutive ports
// if not, and on the addresses of -listen if it is given.
func TestAddresses(t *testing.T) {
	members := func(ports ...string) (list []zkserver.ConfigServer) {
		for i, port := range ports {
			list = append(list, zkserver.ConfigServer{ID: i + 1, Value: "host:2888:3888" + port})
		}
		return list
	}
	for _, c := range []struct {
		given   bool
		members []zkserver.ConfigServer
		want    string
	}{
		{false, nil, "127.0.0.1:2181"},
		{false, members(";2999"), "127.0.0.1:2999"},
		{true, members(";2999"), "127.0.0.1:2181"},
		{false, members(""), "127.0.0.1:2181"},
		{false, members(";21", ";0.0.0.0:22", ";[::]:23"), "127.0.0.1:21 127.0.0.1:22 127.0.0.1:23"},
		{true, members(";21", ";22", ";23"), "127.0.0.1:2181 127.0.0.1:2182 127.0.0.1:2183"},
		{false, members(";21", ";22", ";21"), "127.0.0.1:2181 127.0.0.1:2182 127.0.0.1:2183"},
		{false, members(";21", "", ";23"), "127.0.0.1:2181 127.0.0.1:2182 127.0.0.1:2183"},
	} {
		got, err := addresses(defaultListen, c.given, c.members)
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%v, %v: %q, %v, want %s", c.given, c.members, got, err, c.want)
		}
	}
}

// Zkdev answers srvr alone, unless -4lw allows more. The line to break appends to FourLetterWords in parse.
func TestWords(t *testing.T) {
	for _, c := range []struct {
		args             []string
		allowed, refused string
	}{
		{nil, "srvr", "cons"},
		{[]string{"-4lw", "ruok, cons,"}, "srvr", "stat"},
		{[]string{"-4lw", "*"}, "dump", ""},
	} {
		p := launch(t, append(c.args, "-listen", "127.0.0.1:0")...)
		for word, want := range map[string]bool{c.allowed: true, c.refused: false} {
			if word == "" {
				continue
			}
			nc, err := net.Dial("tcp", p.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			_ = nc.SetDeadline(time.Now().Add(20 * time.Second))
			if _, err := nc.Write([]byte(word)); err != nil {
				t.Fatal(err)
			}
			answer, err := io.ReadAll(nc)
			if err != nil || strings.Contains(string(answer), "not in the whitelist") == want {
				t.Errorf("%v: %s: %q, %v", c.args, word, answer, err)
			}
		}
		p.end(syscall.SIGTERM)
	}
}

// zkdev runs an ensemble of three from a configuration file, and its servers show one tree.
func TestConfigFile(t *testing.T) {
	cfg := filepath.Join(t.TempDir(), "zoo.cfg")
	text := "clientPort=0\nclientPortAddress=127.0.0.1\ndataDir=/x\nserver.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\n"
	if err := os.WriteFile(cfg, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	status := make(chan int, 1)
	go func() {
		status <- run(ctx, []string{"-config", cfg, "-ensemble"}, w)
		w.Close()
	}()
	var addrs []string
	ignored := false
	for lines := bufio.NewScanner(r); len(addrs) < 3 && lines.Scan(); {
		ignored = ignored || strings.Contains(lines.Text(), "dataDir=/x")
		if _, addr, ok := strings.Cut(lines.Text(), "listening on "); ok {
			addrs = append(addrs, addr)
		}
	}
	if len(addrs) != 3 || !ignored {
		t.Fatalf("%q, ignored %v", addrs, ignored)
	}
	for i, addr := range addrs {
		m, err := session.Connect(ctx, addr)
		if err != nil {
			t.Fatal(err)
		}
		s, err := m.Session(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if number := int(s.ID() >> 56); number != i+1 {
			t.Errorf("address %d is that of server %d", i+1, number)
		}
		_, err = s.Create(ctx, "/shared", nil, 0)
		if (err == nil) != (i == 0) {
			t.Errorf("server %d: %v", i+1, err)
		}
		m.Close()
	}
	cancel()
	if got := <-status; got != 0 {
		t.Errorf("status %d", got)
	}
}

// The help of zkdev says what the program is for, and lists its options.
func TestHelp(t *testing.T) {
	var help bytes.Buffer
	if status := run(t.Context(), []string{"-h"}, &help); status != 0 {
		t.Errorf("status %d, want 0", status)
	}
	for _, part := range []string{"ZooKeeper server for development", "-listen", "-fsync"} {
		if !strings.Contains(help.String(), part) {
			t.Errorf("the help is %q, want one that says %q", &help, part)
		}
	}
}
