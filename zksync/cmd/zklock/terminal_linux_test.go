package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/go-zksync/toolkit/zksynctest"
)

// A command that reads the terminal gets its input, Ctrl-Z does not stop the command
// for good, Ctrl-C ends it, and the lock is free afterwards. To see this test fail, leave
// terminal.lend out of child.run.
func TestTerminal(t *testing.T) {
	srv := zksynctest.Start(t)
	master, slave := openTerminal(t)
	cmd := exec.Command(os.Args[0], "run", "-servers", srv.Addr(), "/locks/a", "--", "sh", "-c", `echo ready; read line; echo "got $line"; while read line; do echo "then $line"; done`)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	lines := make(chan string, 100)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(master); s.Scan(); {
			lines <- s.Text()
		}
	}()
	expect := func(want string) {
		t.Helper()
		limit := time.After(20 * time.Second)
		for {
			select {
			case line, ok := <-lines:
				if strings.Contains(line, want) {
					return
				}
				if !ok {
					t.Fatalf("the terminal was closed before %q came", want)
				}
			case <-limit:
				_ = cmd.Process.Kill()
				t.Fatalf("%q did not come", want)
			}
		}
	}
	expect("ready")
	fmt.Fprint(master, "hello\n")
	expect("got hello")
	fmt.Fprint(master, "\x1a") // Ctrl-Z
	// The terminal discards the input that was typed before the signal.
	done := make(chan struct{})
	go func() {
		defer close(done)
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
			if _, err := fmt.Fprint(master, "again\n"); err != nil {
				return
			}
			select {
			case <-done:
			default:
			}
			time.Sleep(50 * time.Millisecond)
			if cmd.Process.Signal(syscall.Signal(0)) != nil {
				return
			}
		}
	}()
	expect("then again")
	fmt.Fprint(master, "\x03") // Ctrl-C
	err := cmd.Wait()
	if status := cmd.ProcessState.ExitCode(); status != 128+int(syscall.SIGINT) {
		t.Errorf("status %d, %v", status, err)
	}
	<-done
	if names, _ := srv.Children("/locks/a"); len(names) != 0 {
		t.Errorf("left behind: %v", names)
	}
}

// A message to a terminal that stops processes of the background (stty tostop) does not stop zklock, which is in the background while
// its command runs. The line to break is the one with signal.Ignore in child.run.
func TestMessageToATerminalWithTostop(t *testing.T) {
	for _, program := range []string{"bash", "stty"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	srv := zksynctest.Start(t)
	master, slave := openTerminal(t)
	// The kernel stops no process whose group has no parent in the session: a shell with job control is the parent.
	cmd := exec.Command("bash", "-c", `set -m; "$0" run -servers "$1" -id stubborn /locks/a -- sh -c 'stty tostop; echo ready; sleep 600'; echo "status $?"; kill -9 %1`, os.Args[0], srv.Addr())
	cmd.Env = append(os.Environ(), asProgram+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	out := &buffer{}
	read := make(chan struct{})
	go func() { defer close(read); _, _ = io.Copy(out, master) }()
	await(t, "the command", func() bool { return strings.Contains(out.String(), "ready") })
	finish(t, "break", "-servers", srv.Addr(), "-yes", "/locks/a").want(t, 0)
	await(t, "the end", func() bool { return strings.Contains(out.String(), "status ") && isClosed(read) })
	_ = cmd.Wait()
	if !strings.Contains(out.String(), "status 4") {
		t.Errorf("zklock was stopped: %s", out)
	}
}

// openTerminal makes a pseudo-terminal.
func openTerminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("this machine has no pseudo-terminals:", err)
	}
	t.Cleanup(func() { master.Close() })
	raw, err := master.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var unlock, number int32
	var errno syscall.Errno
	if err := raw.Control(func(fd uintptr) {
		if _, _, errno = syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCSPTLCK, uintptr(unsafe.Pointer(&unlock))); errno == 0 {
			_, _, errno = syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCGPTN, uintptr(unsafe.Pointer(&number)))
		}
	}); err != nil || errno != 0 {
		t.Fatal(err, errno)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return master, slave
}
