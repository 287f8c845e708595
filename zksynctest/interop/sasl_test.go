package interop

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// The SASL clients of kazoo and Curator authenticate at the embedded server, and our client reads a
// znode of theirs only as the same user. The test fails if the embedded server assigns no identity
// or a wrong identity.
func TestSASLClients(t *testing.T) {
	t.Parallel()
	srv := zksynctest.Start(t, zksynctest.WithConfig(zkserver.Config{SASLUsers: map[string]string{"bob": "secret"}, RequireSASL: true}))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	bob, err := session.Connect(ctx, srv.Addr(), session.WithSASL(session.DigestMD5("bob", "secret")))
	if err != nil {
		t.Fatal(err)
	}
	defer bob.Close()
	s, err := bob.Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for name, client := range map[string]func(t *testing.T, user, password, path string) *exec.Cmd{
		"kazoo": func(t *testing.T, user, password, path string) *exec.Cmd {
			interpreter, err := pythonPath()
			python.need(t, err)
			return exec.CommandContext(ctx, interpreter, "-B", "testdata/sasl.py", srv.Addr(), user, password, path)
		},
		"curator": func(t *testing.T, user, password, path string) *exec.Cmd {
			cmd, err := javaCommand()
			java.need(t, err)
			file := filepath.Join(t.TempDir(), "jaas.conf")
			text := fmt.Sprintf("Client {\n org.apache.zookeeper.server.auth.DigestLoginModule required username=%q password=%q;\n};\n", user, password)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			args := append([]string{"-Djava.security.auth.login.config=" + file}, cmd.Args[1:len(cmd.Args)-1]...)
			return exec.CommandContext(ctx, cmd.Path, append(args, "Sasl", srv.Addr(), user, path)...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := "/by-" + name
			cmd := client(t, "bob", "secret", path)
			var stderr strings.Builder
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil || strings.TrimSpace(string(out)) != name {
				t.Fatalf("printed %q, error %v\n%s", out, err, stderr.String())
			}
			data, _, err := s.Get(ctx, path)
			if err != nil || string(data) != name {
				t.Errorf("as the same user: data %q, error %v", data, err)
			}
			if out, err := client(t, "bob", "wrong", "/wrong-"+name).Output(); err == nil && strings.TrimSpace(string(out)) == name {
				t.Error("a wrong password was accepted")
			}
		})
	}
}
