package zksynctest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/go-zksync/toolkit/zksynctest/internal/realzk"
)

const (
	orphanEnv  = "ZKSYNCTEST_ORPHAN"  // set in the test binary that the test kills
	orphanMark = "server listens at " // precedes the address of the server
)

// runAndKill runs the calling test in another process, kills that process once its server serves,
// and returns the address of the server.
func runAndKill(t *testing.T) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), orphanEnv+"=1", "TMPDIR="+t.TempDir())
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var addr string
	for lines := bufio.NewScanner(stdout); addr == "" && lines.Scan(); {
		_, addr, _ = strings.Cut(lines.Text(), orphanMark)
	}
	if addr != "" {
		if _, err := realzk.Ask(t.Context(), addr, "ruok"); err != nil {
			t.Errorf("the server did not serve before: %v", err)
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if addr == "" {
		t.Fatal("the other process did not name its server")
	}
	return addr
}

// The servers that a test starts end with its process, also if the process is killed. TestRealDiesWithTheTestBinary
// runs this test binary, has it start a server, and kills it.
func TestRealDiesWithTheTestBinary(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux kills the servers of a test binary that dies")
	}
	if os.Getenv(orphanEnv) != "" {
		e := RealZooKeeper(t, 1)
		fmt.Printf("%s%s\n", orphanMark, e.DirectAddr(1))
		select {} // until killed
	}
	needReal(t)
	addr := runAndKill(t)
	eventually(t, "the server of a dead test to end", answerTime, func() bool {
		_, err := realzk.Ask(t.Context(), addr, "ruok")
		return err != nil
	})
}
