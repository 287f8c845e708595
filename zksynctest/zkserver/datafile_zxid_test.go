package zkserver_test

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A client of an ensemble with a DataFile, or with a snapshot, resumes its session with the latest zxid that it has
// seen: also with the beginning of an epoch, and with the zxid of a write that failed on a connection that its session had left.
func TestTheZxidsThatClientsHaveSeenAreKept(t *testing.T) {
	for name, shown := range map[string]func(s *zkserver.Server, old *raw){
		"epoch": func(s *zkserver.Server, _ *raw) {
			for range 3 {
				if err := s.Endpoint(s.Leader()).Restart(); err != nil {
					t.Fatal(err)
				}
			}
		},
		"moved write": func(_ *zkserver.Server, old *raw) {
			old.send(zkserver.OpCreate, createRec("/a", "", 0))
			old.closed()
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := zkserver.Config{DataFile: filepath.Join(t.TempDir(), "data")}
			ensemble(t, 3, cfg, func(t *testing.T, s *zkserver.Server) {
				old := at(t, s, 1, 30*time.Second)
				old.moved(s, 2).welcome()
				shown(s, old)
				r := old.moved(s, 2).welcome()
				seen := r.want(0, zkserver.OpExists, existsRec("/")).zxid
				var snapshot bytes.Buffer
				if err := s.Snapshot(&snapshot); err != nil {
					t.Fatal(err)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				resume := func(t *testing.T, s *zkserver.Server) {
					again := dialAt(t, s, 2)
					again.hello(seen, 30*time.Second, old.id, old.password)
					again.welcome()
				}
				restarted, err := zkserver.NewEnsemble(cfg, 3)
				if err != nil {
					t.Fatal(err)
				}
				defer restarted.Close()
				resume(t, restarted)
				restored, err := zkserver.NewEnsemble(zkserver.Config{}, 3)
				if err != nil {
					t.Fatal(err)
				}
				defer restored.Close()
				if err := restored.Restore(&snapshot); err != nil {
					t.Fatal(err)
				}
				resume(t, restored)
				if now := restored.Zxid(); now>>32 <= seen>>32 {
					t.Errorf("zxid %#x after Restore, want a later epoch than that of %#x", now, seen)
				}
			})
		})
	}
}
