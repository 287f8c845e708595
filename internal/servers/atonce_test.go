package servers_test

import (
	"flag"
	"os"
	"os/exec"
	"strings"
	"testing"
)

const atOnce = 7 // as TestMain has it

// AtOnce sets how many parallel tests run at the same time, unless -test.parallel sets it. The test runs its own binary
// with the flag and without it.
func TestAtOnce(t *testing.T) {
	const asChild = "ZKSYNC_AT_ONCE"
	if os.Getenv(asChild) != "" {
		os.Stdout.WriteString("at once: " + flag.Lookup("test.parallel").Value.String() + "\n")
		return
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "at once: 7\n"},
		{[]string{"-test.parallel=3"}, "at once: 3\n"},
	} {
		cmd := exec.Command(os.Args[0], append(c.args, "-test.run=^TestAtOnce$")...)
		cmd.Env = append(os.Environ(), asChild+"=1")
		out, err := cmd.Output()
		if err != nil || !strings.Contains(string(out), c.want) {
			t.Errorf("with %q it says %q, %v; want %q", c.args, out, err, c.want)
		}
	}
}
