package interop

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// answerTime bounds the time of an answer that must come, on a busy machine.
const answerTime = 60 * time.Second

// A peer is a process that uses other recipes or zksync, and receives its commands as lines: see
// testdata/java/Peer.java.
type peer struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	stderr strings.Builder
	done   chan struct{} // closed when its output has ended
	told   chan string   // lines of the peer that are no answers

	mu      sync.Mutex
	last    int
	waiting map[int]chan answer
	names   int
}

// An answer is a line of a peer, with the time at which the line came.
type answer struct {
	at   time.Time
	text string
	err  error
}

var errPeerGone = errors.New("the peer's process has ended")

func launch(cmd *exec.Cmd) (*peer, error) {
	p := &peer{cmd: cmd, done: make(chan struct{}), told: make(chan string, 16), waiting: make(map[int]chan answer)}
	cmd.Stderr = &p.stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p.in = in
	go p.read(out)
	return p, nil
}

func (p *peer) read(out io.Reader) {
	defer close(p.done)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		words := strings.SplitN(lines.Text(), " ", 4)
		if len(words) < 3 {
			continue
		}
		id, _ := strconv.Atoi(words[0])
		nanos, _ := strconv.ParseInt(words[1], 10, 64)
		a := answer{at: time.Unix(0, nanos)}
		if len(words) > 3 {
			a.text = words[3]
		}
		if words[2] == "error" {
			a.err = errors.New(a.text)
		}
		p.mu.Lock()
		ch := p.waiting[id]
		delete(p.waiting, id)
		p.mu.Unlock()
		switch {
		case ch != nil:
			ch <- a
		case id == 0:
			p.told <- a.text
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, ch := range p.waiting {
		ch <- answer{err: errPeerGone}
	}
	p.waiting = nil
}

// ask sends a command and returns a channel that receives the answer.
func (p *peer) ask(words ...string) <-chan answer {
	ch := make(chan answer, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting == nil {
		ch <- answer{err: errPeerGone}
		return ch
	}
	p.last++
	p.waiting[p.last] = ch
	if _, err := fmt.Fprintf(p.in, "%d %s\n", p.last, strings.Join(words, " ")); err != nil {
		delete(p.waiting, p.last)
		ch <- answer{err: fmt.Errorf("%w: %w", errPeerGone, err)}
	}
	return ch
}

func (p *peer) name(prefix string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.names++
	return prefix + strconv.Itoa(p.names)
}

// end closes the input of the process and waits for its end.
func (p *peer) end() error {
	_ = p.in.Close()
	select {
	case <-p.done:
	case <-time.After(answerTime):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
	err := p.cmd.Wait()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, p.stderr.String())
	}
	return nil
}

// kill kills the process like kill -9, and returns after its end.
func (p *peer) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
	_ = p.cmd.Wait()
}

// answered waits for an answer that must be without error.
func answered(t testing.TB, what string, ch <-chan answer) string {
	t.Helper()
	return inTime(t, what, ch).text
}

func inTime(t testing.TB, what string, ch <-chan answer) answer {
	t.Helper()
	select {
	case a := <-ch:
		if a.err != nil {
			t.Fatalf("%s: %v", what, a.err)
		}
		return a
	case <-time.After(answerTime):
		t.Fatalf("%s: no answer within %v", what, answerTime)
	}
	return answer{}
}

// unanswered checks that a call is still waiting. It checks once, after the test has observed all
// other effects.
func unanswered(t testing.TB, what string, ch <-chan answer) {
	t.Helper()
	select {
	case a := <-ch:
		t.Fatalf("%s did not wait: %q, %v", what, a.text, a.err)
	default:
	}
}

// A client is a session that a peer has for one test.
type client struct {
	*peer
	name string
}

// connect opens a session of the peer until the end of the test.
func (p *peer) connect(t testing.TB, servers string, timeout time.Duration) *client {
	t.Helper()
	c := &client{peer: p, name: p.name("c")}
	answered(t, "connect", p.ask("connect", c.name, servers, strconv.FormatInt(timeout.Milliseconds(), 10)))
	t.Cleanup(func() {
		select {
		case <-p.done:
			return // the test has killed the peer
		default:
		}
		if a := inTime(t, "close", p.ask("close", c.name)); a.err != nil {
			t.Error("close:", a.err)
		}
	})
	return c
}

// A handle is an object of a recipe in a peer.
type handle struct {
	*client
	kind, name string
}

func (c *client) make(t testing.TB, kind, path string, args ...string) *handle {
	t.Helper()
	h := &handle{client: c, kind: kind, name: c.peer.name("h")}
	answered(t, "new "+kind, c.ask(append([]string{"new", h.name, kind, c.name, path}, args...)...))
	return h
}

// start calls a method and does not wait for it.
func (h *handle) start(method string, args ...string) <-chan answer {
	return h.ask(append([]string{"call", h.name, method}, args...)...)
}

// call calls a method, which must succeed, and returns its result.
func (h *handle) call(t testing.TB, method string, args ...string) string {
	t.Helper()
	return answered(t, h.kind+" "+method, h.start(method, args...))
}

// want is call with a check of the result.
func (h *handle) want(t testing.TB, want, method string, args ...string) {
	t.Helper()
	if got := h.call(t, method, args...); got != want {
		t.Fatalf("%s %s %s: %s, want %s", h.kind, method, strings.Join(args, " "), got, want)
	}
}

func (p *peer) String() string { return fmt.Sprintf("process %d of %s", p.cmd.Process.Pid, os.Args[0]) }
