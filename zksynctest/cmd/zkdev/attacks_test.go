package main

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/session"
)

var attackSize = flag.Int("attack", 1, "how many times the small size of its attacks TestAttacks uses")

const (
	// attackSlowest bounds the answer times of another client during an attack, and
	// attackMemory the memory of the process.
	attackSlowest = 20 * time.Second
	attackMemory  = 1500 << 20
)

// request returns a frame with a header.
func request(op int32, body []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(8+len(body)))
	b = binary.BigEndian.AppendUint32(append(b, 0, 0, 0, 1), uint32(op))
	return append(b, body...)
}

func text(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
}

// attacker opens a connection with a session.
func attacker(t *testing.T, addr string) net.Conn {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	hello := append([]byte{0, 0, 0, 44}, make([]byte, 44)...)
	binary.BigEndian.PutUint32(hello[16:], 30_000)
	hello[31] = 16
	_ = nc.SetDeadline(time.Now().Add(30 * time.Second))
	_, _ = nc.Write(hello)
	_, _ = io.ReadFull(nc, make([]byte, 40))
	return nc
}

// await writes a request of an attacker, and reports whether the server answered the
// request.
func await(nc net.Conn, b []byte) bool {
	_ = nc.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := nc.Write(b); err != nil {
		return false
	}
	var head [4]byte
	if _, err := io.ReadFull(nc, head[:]); err != nil {
		return false
	}
	_, err := io.CopyN(io.Discard, nc, int64(binary.BigEndian.Uint32(head[:])))
	return err == nil
}

// attacks are hostile uses of the server. Each run returns how many times the attack
// was tried.
var attacks = []struct {
	name, shell string
	run         func(t *testing.T, addr string, size int, s *session.Session) int
}{
	{"connections beyond the file descriptors", "ulimit -n 100;", func(t *testing.T, addr string, size int, _ *session.Session) int {
		for range 150 * size {
			nc, err := net.Dial("tcp", addr)
			if err != nil {
				break
			}
			defer nc.Close()
		}
		return 150 * size
	}},
	{"a multiRead of 3,000 times 1 MB", "", func(t *testing.T, addr string, size int, _ *session.Session) int {
		var body []byte
		for range 3000 {
			body = append(text(append(body, 0, 0, 0, 4, 0, 0xff, 0xff, 0xff, 0xff), "/big"), 0)
		}
		body = append(body, 0xff, 0xff, 0xff, 0xff, 1, 0xff, 0xff, 0xff, 0xff)
		for range size {
			await(attacker(t, addr), request(22, body))
		}
		return size
	}},
	{"answers of 1 MB that nobody reads", "", func(t *testing.T, addr string, size int, s *session.Session) int {
		read := request(4, append(text(nil, "/big"), 0))
		for range 2 * size {
			nc := attacker(t, addr)
			for range 100 {
				_, _ = nc.Write(read)
			}
		}
		for range 500 { // as long as the server answers
			if _, _, err := s.Exists(t.Context(), "/"); err != nil {
				t.Error(err)
				break
			}
		}
		return 200 * size
	}},
	{"events of 1 kB that nobody reads", "", func(t *testing.T, addr string, size int, s *session.Session) int {
		path := "/" + strings.Repeat("x", 1000)
		if _, err := s.Create(t.Context(), path, nil, 0); err != nil {
			t.Error(err)
		}
		for range 20 {
			await(attacker(t, addr), request(106, append(text(nil, "/"), 0, 0, 0, 1)))
		}
		for i := range 2000 * size {
			if _, err := s.Set(t.Context(), path, nil, -1); err != nil {
				t.Errorf("set %d: %v", i, err)
				break
			}
		}
		return 20 * 2000 * size
	}},
	{"reads of paths of 900 kB", "", func(t *testing.T, addr string, size int, _ *session.Session) int {
		nc := attacker(t, addr)
		read := request(4, append(text(nil, "/"+strings.Repeat("x", 900_000)), 0))
		for range 200 * size {
			if !await(nc, read) {
				break
			}
		}
		return 200 * size
	}},
	{"damaged frames", "", func(t *testing.T, addr string, size int, _ *session.Session) int {
		rng := rand.New(rand.NewPCG(1, 1))
		good := [][]byte{request(4, append(text(nil, "/big/x"), 1)), request(3, append(text(nil, "/no"), 1)), request(12, append(text(nil, "/"), 0)), request(101, make([]byte, 40)), request(11, nil)}
		for range 100 * size {
			nc := attacker(t, addr)
			go func() { _, _ = io.Copy(io.Discard, nc) }()
			var b []byte
			for range 200 {
				f := append([]byte(nil), good[rng.IntN(len(good))]...)
				if rng.IntN(20) == 0 {
					f[4+rng.IntN(len(f)-4)] ^= 1 << rng.IntN(8)
				}
				b = append(b, f...)
			}
			_, _ = nc.Write(b)
			nc.Close()
		}
		return 100 * size * 200
	}},
	{"connections that say nothing", "", func(t *testing.T, addr string, size int, _ *session.Session) int {
		n := min(300*size, 3000)
		for range n {
			nc, err := net.Dial("tcp", addr)
			if err != nil {
				break
			}
			t.Cleanup(func() { nc.Close() })
		}
		return n
	}},
	{"watches", "", func(t *testing.T, addr string, size int, _ *session.Session) int {
		nc := attacker(t, addr)
		for i := range 50 * size {
			body := append(make([]byte, 8), 0, 0, 0, 0)
			body = binary.BigEndian.AppendUint32(body, 1000)
			for j := range 1000 {
				body = text(body, fmt.Sprintf("/big/w%08d", i*1000+j))
			}
			if !await(nc, request(101, append(body, 0, 0, 0, 0))) {
				t.Error("a watch was refused")
				break
			}
		}
		return 50 * size * 1000
	}},
}

// No attack ends the process, makes it take more memory than its limits allow, or delays another
// client beyond the bound. With -v the test prints the rows of the table in docs/results.md, which
// used -attack 10.
func TestAttacks(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("memory and processor time are read from /proc")
	}
	for _, a := range attacks {
		t.Run(strings.ReplaceAll(a.name, " ", "-"), func(t *testing.T) {
			p := launchBy(t, os.Getenv("ZKSYNC_ATTACK_SHELL")+a.shell+` exec "$0" "$@"`, "-listen", "127.0.0.1:0")
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
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
			if _, err := s.Create(ctx, "/big", make([]byte, 1_000_000), 0); err != nil {
				t.Fatal(err)
			}
			count, done := 0, make(chan struct{})
			go func() {
				defer close(done)
				count = a.run(t, p.addr, *attackSize, s)
			}()
			slowest, usage := time.Duration(0), ""
			for running := true; running; {
				if p.peak() > 0 {
					usage = p.usage() // a process that has ended has no usage
				}
				begin := time.Now()
				asked, stop := context.WithTimeout(ctx, attackSlowest)
				_, _, err := s.Exists(asked, "/")
				stop()
				if slowest = max(slowest, time.Since(begin)); err != nil {
					t.Fatalf("%d: another client was not served: %v; %s, slowest %v", count, err, usage, slowest)
				}
				select {
				case <-done:
					running = false
				case <-time.After(5 * time.Millisecond):
				}
			}
			t.Logf("| %s | %d | %s | %v |", a.name, count, p.usage(), slowest.Round(time.Millisecond))
			if peak := p.peak(); peak > attackMemory {
				t.Errorf("the process took %d MB", peak>>20)
			}
			m.Close() // while a server answers: Close without one waits for a second
			if _, status := p.end(syscall.SIGTERM); status != 0 {
				t.Errorf("it ended with status %d", status)
			}
		})
	}
}

// peak returns the maximum memory of the process so far, in bytes.
func (p *process) peak() int {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	_, rest, _ := strings.Cut(string(b), "VmHWM:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kb, _ := strconv.Atoi(fields[0])
	return kb << 10
}

// usage returns the peak memory and the processor time as text.
func (p *process) usage() string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	_, rest, _ := strings.Cut(string(b), ") ")
	ticks := 0
	if f := strings.Fields(rest); len(f) > 12 {
		user, _ := strconv.Atoi(f[11])
		system, _ := strconv.Atoi(f[12])
		ticks = user + system
	}
	return fmt.Sprintf("%d MB | %.1f s", p.peak()>>20, float64(ticks)/100)
}
