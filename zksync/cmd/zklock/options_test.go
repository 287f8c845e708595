package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-zksync/toolkit/zksynctest"
)

// A wrong DURATION is answered with a valid one, and the manual names the type. The line to break is that with the unit in duration.Set.
func TestDurations(t *testing.T) {
	for _, option := range []string{"-wait", "-grace", "-timeout", "-connect"} {
		finish(t, "run", option, "1", "/a", "true").want(t, statusUsage, option, "as 10s")
		finish(t, "help", "run").want(t, 0, option+" DURATION")
	}
	finish(t, "help", "run").want(t, 0, "-wait DURATION", "(default 5s)")
}

// zklock advises its own options, and the tools of a shell, where the error of the packages advises a Go option. The line to break is
// that with inOptions in complain.
func TestAdviceForTheShell(t *testing.T) {
	srv := zksynctest.Start(t)
	r := finish(t, "run", "-servers", srv.Addr()+"/absent", "/a", "true")
	r.want(t, statusEnsemble, "the chroot does not exist", "/absent", "zkCli.sh")
	if strings.Contains(r.errors.String(), "session.With") {
		t.Errorf("a Go option is advised: %s", r.errors)
	}
	// The texts of the list are texts of the packages.
	files, err := filepath.Glob("../../../session/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		source.Write(text)
	}
	for i := 0; i < len(apiAdvice); i += 2 {
		if !strings.Contains(source.String(), apiAdvice[i]) {
			t.Errorf("package session does not say %q", apiAdvice[i])
		}
	}
}
