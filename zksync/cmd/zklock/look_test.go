package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// An operator finds the holder, is asked before the lock breaks, and sees the next holder, as text and as JSON.
func TestLookAndBreak(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		dir := servers.Path(t)
		path := dir + "/lock"
		id := func(m *session.Manager) string {
			t.Helper()
			s, err := m.Session(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprintf("%#x", uint64(s.ID()))
		}
		at := func(input string, args ...string) *result {
			t.Helper()
			r, done := startWith(t.Context(), input, append([]string{args[0], "-servers", srv.Address()}, args[1:]...)...)
			<-done
			return r
		}
		a, b := srv.Connect(t), srv.Connect(t)
		held, err := zksync.NewMutex(a, path, zksync.WithID("host-a:1")).LockContext(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan error, 1)
		go func() { got <- zksync.NewMutex(b, path, zksync.WithID("host-b:2")).Lock(t.Context()) }()

		watching, stop := context.WithCancel(t.Context())
		w, wDone := start(watching, "watch", "-servers", srv.Address(), path)
		await(t, "both contenders", func() bool {
			return strings.Contains(w.out.String(), "holds   host-a:1") && strings.Contains(w.out.String(), "joined  host-b:2")
		})
		at("", "ls", dir).want(t, 0, path, "lock", "host-a:1", "zksync")
		at("", "who", path).want(t, 0, "holds  exclusive  host-a:1  "+id(a), "waits  exclusive  host-b:2  "+id(b))
		var found entry
		if err := json.Unmarshal([]byte(at("", "who", "-json", path).out.String()), &jsonEntry{&found}); err != nil {
			t.Error(err)
		}
		if len(found.Participants) != 2 || found.Participants[0].Session != id(a) || !found.Participants[0].Holds || found.Depth != 1 {
			t.Errorf("who -json: %+v", found)
		}
		at("n\n", "break", path).want(t, 1, "host-a:1 holds "+path, "nothing was broken")
		if held.Err() != nil {
			t.Fatal("the lock was broken without consent")
		}
		at("y\n", "break", path).want(t, 0, "now "+path+" is held by host-b:2")
		if err := <-got; err != nil {
			t.Fatal(err)
		}
		<-held.Done()
		await(t, "the next holder", func() bool {
			return strings.Contains(w.out.String(), "left    host-a:1") && strings.Contains(w.out.String(), "holds   host-b:2")
		})
		stop()
		<-wDone
		w.want(t, 130)
		at("", "break", "-yes", "-id", "host-a:1", path).want(t, 1, "no such contender")
		r := at("", "break", "-yes", "-json", "-id", "host-b:2", path)
		r.want(t, 0, `"id":"host-b:2"`)
		at("", "break", "-yes", path).want(t, 1, "nothing was broken")
		at("", "break", "-yes", dir).want(t, 1, "directory")
		at("", "who", dir+"/absent").want(t, 1, "nobody holds "+dir+"/absent")
	})
}

// A jsonEntry reads an entry, whose kind and classes are words.
type jsonEntry struct{ *entry }

func (e *jsonEntry) UnmarshalJSON(b []byte) error {
	var read struct {
		Path, Kind   string
		Depth        int
		Participants []struct {
			ID, Class, Session string
			Holds              bool
		}
	}
	if err := json.Unmarshal(b, &read); err != nil {
		return err
	}
	if read.Kind != "lock" {
		return fmt.Errorf("kind %q", read.Kind)
	}
	e.Depth = read.Depth
	for _, p := range read.Participants {
		if p.Class != "exclusive" {
			return fmt.Errorf("class %q", p.Class)
		}
		e.Participants = append(e.Participants, participant{ID: p.ID, Session: p.Session, Holds: p.Holds})
	}
	return nil
}

// Every command has a manual that describes each of its options, and the completions
// know every command and option.
func TestHelpAndCompletion(t *testing.T) {
	manual := finish(t, "help").out.String()
	for name := range subcommands {
		text := finish(t, "help", name).out.String()
		for _, section := range []string{"NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "EXAMPLES"} {
			if !strings.Contains(text, section+"\n") {
				t.Errorf("help %s has no %s", name, section)
			}
		}
		if finish(t, name, "-h").out.String() != text || !strings.Contains(manual, name) {
			t.Errorf("zklock %s -h is not zklock help %s, or zklock help does not name it", name, name)
		}
		for _, shell := range []string{"bash", "zsh", "fish"} {
			script := finish(t, "completion", shell).out.String()
			for _, option := range optionNames(name) {
				if !strings.Contains(text, "-"+option+" ") || !strings.Contains(script, option) {
					t.Errorf("-%s of %s is not in the manual, or not in the completion of %s", option, name, shell)
				}
			}
		}
	}
}

// The data of znodes is shown without characters that command a terminal, and unchanged
// in JSON; an unreadable child hides no other child. Breaks if table.row prints cells as
// they are, or if ls returns the error of below at once.
func TestWhatOthersHaveWritten(t *testing.T) {
	srv := zksynctest.Start(t)
	m := srv.Connect(t)
	id := "host\x1b[31m\r\nnext:1"
	mu := zksync.NewMutex(m, "/locks/a", zksync.WithID(id))
	if err := mu.Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer mu.Unlock()
	s, err := m.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(t.Context(), "/locks/denied", nil, 0, zk.DigestACL(zk.PermAll, "somebody", "else")...); err != nil {
		t.Fatal(err)
	}
	at := func(args ...string) *result { return finish(t, slices.Insert(args, 1, "-servers", srv.Addr())...) }
	shown := `host\x1b[31m\r\nnext:1`
	at("ls", "/locks").want(t, 3, shown, "/locks/denied", "READ")
	at("who", "/locks/a").want(t, 0, shown)
	at("run", "-try", "/locks/a", "true").want(t, 1, shown)
	for _, r := range []*result{at("ls", "/locks"), at("who", "/locks/a"), at("run", "-try", "/locks/a", "true"), at("break", "/locks/a")} {
		if text := r.out.String() + r.errors.String(); strings.ContainsAny(text, "\x1b\r") {
			t.Errorf("a terminal would obey %q", text)
		}
	}
	var found struct{ Participants []struct{ ID string } }
	if err := json.Unmarshal([]byte(at("who", "-json", "/locks/a").out.String()), &found); err != nil || len(found.Participants) != 1 || found.Participants[0].ID != id {
		t.Errorf("who -json: %+v, %v", found, err)
	}
}

// The lines of -auth-file authenticate by digest and by SASL, and a line that is neither
// is a wrong usage. Spaces at the end of a line belong to the password. Breaks if ensemble.auth takes sasl for a scheme as any other.
func TestAuthFile(t *testing.T) {
	srv := zksynctest.Start(t, zksynctest.WithConfig(zkserver.Config{SASLUsers: map[string]string{"bob": "sec:ret "}, RequireSASL: true}))
	file := filepath.Join(t.TempDir(), "auth")
	for text, status := range map[string]int{
		" # ours\n \n sasl:bob:sec:ret \r\ndigest:app:pw\n": 0, "sasl:bob:sec:ret\n": 3, "sasl:bob\n": 2, "nonsense\n": 2,
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		finish(t, "ls", "-servers", srv.Addr(), "-auth-file", file, "/").want(t, status)
	}
}

// The completion works in bash, and runs nothing that the name of a znode may say. It is
// tried if bash is installed. Breaks if the names go through compgen -W.
func TestBashCompletes(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed")
	}
	script := finish(t, "completion", "bash").out.String() + `
COMP_WORDS=(zklock br); COMP_CWORD=1; _zklock; echo "${COMPREPLY[@]}"
COMP_WORDS=(zklock run -el); COMP_CWORD=2; _zklock; echo "${COMPREPLY[@]}"
zklock() { printf '%s\n' PATH '/l/$(touch${IFS}'"$ran"')' /l/other; }
COMP_WORDS=(zklock who /l/); COMP_CWORD=2; _zklock; echo "${#COMPREPLY[@]} ${COMPREPLY[1]}"
`
	cmd := exec.Command("bash", "-c", script)
	ran := filepath.Join(t.TempDir(), "ran")
	cmd.Env = append(os.Environ(), "ran="+ran)
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "break\n-elect\n2 /l/other\n" {
		t.Errorf("bash completes %q, %v", out, err)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("the name of a znode was run as a command")
	}
}

// If the time of -connect ends, ls shows the children that it has read, and one line says how many there are. Breaks if
// below does not look at ctx.
func TestTheTimeOfALsEnds(t *testing.T) {
	t.Parallel()
	srv := zksynctest.Start(t)
	m := srv.Connect(t)
	for i := range 500 {
		if err := zksync.NewBarrier(m, fmt.Sprintf("/gates/%03d", i)).Set(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	srv.Inject(zksynctest.Fault{Path: "/gates/*", Do: zkserver.Delay(5 * time.Millisecond), Times: -1})
	r := finish(t, "ls", "-connect", "1s", "-servers", srv.Addr(), "/gates")
	r.want(t, statusEnsemble, "/gates/", "of 500 children")
	if lines := strings.Count(r.errors.String(), "\n"); lines != 1 {
		t.Errorf("%d lines: %s", lines, r.errors)
	}
}

// For a path without a znode, and for a lock without contenders, `zklock who` exits with 1, says that no client holds the lock or
// waits for it, and prints a JSON entry without participants. It says nothing about a holder of a queue. The line to break is
// the one with zk.ErrNoNode in whoCommand.run.
func TestWhoOfNobody(t *testing.T) {
	srv := zksynctest.Start(t)
	m := srv.Connect(t)
	mu := zksync.NewMutex(m, "/locks/left")
	if err := mu.Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := mu.Unlock(); err != nil {
		t.Fatal(err)
	}
	if err := zksync.NewQueue(m, "/queue").Put(t.Context(), []byte("a")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/locks/left", "/locks/absent", "/absent/lock"} {
		finish(t, "who", "-servers", srv.Addr(), path).want(t, statusConflict, path+": empty\n", "nobody holds "+path+" or waits for it")
		r := finish(t, "who", "-servers", srv.Addr(), "-json", path)
		r.want(t, statusConflict)
		var e struct {
			Path, Kind   string
			Participants []participant
		}
		if err := json.Unmarshal([]byte(r.out.String()), &e); err != nil || e.Path != path || e.Kind != "empty" || e.Participants == nil || len(e.Participants) > 0 {
			t.Errorf("who -json: %s, %v", r.out, err)
		}
	}
	if r := finish(t, "who", "-servers", srv.Addr(), "/queue"); r.status != 0 || strings.Contains(r.out.String(), "nobody") {
		t.Errorf("who of a queue: status %d, %s", r.status, r.out)
	}
}

// The command lists the contenders of one kind, and says how many contenders of other kinds use the path. It says nothing
// about a path with one kind. Breaks if whoCommand.run leaves Beside at 0.
func TestWhoOfAPathWithSeveralKinds(t *testing.T) {
	srv := zksynctest.Start(t)
	m := srv.Connect(t)
	lock := func(path string) {
		if err := zksync.NewMutex(m, path, zksync.WithID("locker:1")).Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	elect := func(path string) {
		if _, err := zksync.NewElection(m, path, zksync.WithID("leader:1")).Campaign(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	read := func(path string) {
		if err := zksync.NewRWMutex(m, path, zksync.WithID("reader:1")).RLock(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	take := func(path string) {
		if err := zksync.NewSemaphore(m, path, 1, zksync.WithID("taker:1")).Acquire(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
	}
	for path, c := range map[string]struct {
		users []func(path string)
		want  string
	}{
		"/lock":        {[]func(string){lock}, "locker:1"},
		"/rwlock":      {[]func(string){read}, "reader:1"},
		"/semaphore":   {[]func(string){take}, "taker:1"},
		"/lock-latch":  {[]func(string){lock, elect}, "leader:1"},
		"/lock-read":   {[]func(string){lock, read}, "reader:1"},
		"/lock-take":   {[]func(string){lock, take}, "taker:1"},
		"/latch-rlock": {[]func(string){read, elect}, "leader:1"},
	} {
		for _, use := range c.users {
			use(path)
		}
		r := finish(t, "who", "-servers", srv.Addr(), path)
		r.want(t, 0, "holds", c.want)
		asJSON := finish(t, "who", "-servers", srv.Addr(), "-json", path)
		const text, field = "other kinds at", `"beside":1`
		if several := len(c.users) > 1; strings.Contains(r.out.String(), text+" "+path+", not listed: 1;") != several || strings.Contains(asJSON.out.String(), field) != several {
			t.Errorf("%d kinds: %s%s", len(c.users), r.out, asJSON.out)
		}
	}
}

// ls lists every child that existed when ls was called, also if the server of the client lags behind, or if the session ends during
// the listing. Breaks if below lists the children without SyncQuorum, or outside of Manager.Do.
func TestLsWithALateServerAndALostSession(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t)
		s, err := m.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		set := func(path string) {
			if err := zksync.NewBarrier(srv.Connect(t), path).Set(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		set("/gates/a")
		if all, err := below(t.Context(), m, "/gates"); len(all) != 1 || err != nil {
			t.Errorf("%d children, %v", len(all), err)
		}
		srv.Lag(s.ID())
		set("/gates/b")
		if all, err := below(t.Context(), m, "/gates"); len(all) != 2 || err != nil {
			t.Errorf("%d children of a server that lags behind, %v; want 2", len(all), err)
		}
		srv.Inject(zksynctest.Fault{Session: s.ID(), Op: zkserver.OpGetChildren2, Path: "/gates", Do: zksynctest.Call(func() { srv.ExpireSession(s.ID()) })})
		if all, err := below(t.Context(), m, "/gates"); len(all) != 2 || err != nil {
			t.Errorf("%d children, and %v, when the session has ended; want 2", len(all), err)
		}
	})
}
