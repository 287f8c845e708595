package zksynctest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// failedTest is a test that has failed.
type failedTest struct {
	testing.TB
	logs     []string
	cleanups []func()
}

func (f *failedTest) Failed() bool     { return true }
func (f *failedTest) Helper()          {}
func (f *failedTest) Cleanup(g func()) { f.cleanups = append(f.cleanups, g) }
func (f *failedTest) Logf(format string, args ...any) {
	f.logs = append(f.logs, fmt.Sprintf(format, args...))
}

func (f *failedTest) end() {
	for _, g := range slices.Backward(f.cleanups) {
		g()
	}
	f.cleanups = nil
}

// A test that has failed logs the tree of its server and the requests that faults struck.
func TestAFailedTestShowsWhatFaultsDid(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		failed := &failedTest{TB: t}
		srv := zksynctest.Start(failed)
		m := srv.Connect(failed)
		s, err := m.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		srv.Inject(zksynctest.Fault{
			Do:    zksynctest.Error(zkserver.ErrSystem),
			Match: func(op zksynctest.Op) bool { return op.Code == zkserver.OpCreate && op.Path == "/a" },
		})
		if _, err := s.Create(t.Context(), "/a", nil, 0); err == nil {
			t.Error("the fault did not strike")
		}
		if _, err := s.Create(t.Context(), "/b", nil, 0); err != nil {
			t.Error(err)
		}
		failed.end()
		log := strings.Join(failed.logs, "\n")
		if !strings.Contains(log, " create /a: system error zxid ") || !strings.Contains(log, "[Error(-1) BeforeCommit]") ||
			!strings.Contains(log, "\n/b version=0") || strings.Contains(log, "create /b") {
			t.Errorf("%s", log)
		}
	})
}

// A test that has failed logs at most 300 znodes of the tree of its server, and the number of the others. Dump shows all znodes.
func TestAFailedTestShowsAPartOfAGreatTree(t *testing.T) {
	for created, want := range map[int]string{
		299: "/n298 version=0", // and the root
		300: "/n298 version=0 cversion=0 zxid=0x12b\n... and 1 more znodes",
		999: "/n298 version=0 cversion=0 zxid=0x12b\n... and 700 more znodes",
	} {
		failed := &failedTest{TB: t}
		srv := zksynctest.Start(failed)
		for i := range created {
			if err := srv.Create(fmt.Sprintf("/n%03d", i), nil); err != nil {
				t.Fatal(err)
			}
		}
		if n := strings.Count(srv.Dump(), "\n"); n != created+1 {
			t.Errorf("Dump shows %d znodes, want %d", n, created+1)
		}
		failed.end()
		log := strings.Join(failed.logs, "\n")
		if n := strings.Count(log, " version="); n != min(created+1, 300) || !strings.Contains(log, want) ||
			strings.Contains(log, " more znodes") != (created > 299) {
			t.Errorf("with %d znodes the log shows %d, and lacks %q or says that there are more:\n%s", created+1, n, want, log)
		}
	}
}
