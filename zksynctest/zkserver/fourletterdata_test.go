package zkserver_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// conf and dirs report the path and the lengths of the DataFile, the snapshot and the changes apart.
func TestWordsAboutTheDataFile(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		s, file := onFile(t, zkserver.Config{FourLetterWords: []string{"*"}})
		size := func() int64 {
			info, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			return info.Size()
		}
		snapshot := size()
		look := func() {
			t.Helper()
			changes := size() - snapshot
			if got, want := word(t, s, "dirs"), fmt.Sprintf("datadir_size: %d\nlogdir_size: %d\n", snapshot, changes); got != want {
				t.Errorf("dirs: %q, want %q", got, want)
			}
			want := fmt.Sprintf("\ndataDir=%[1]s\ndataDirSize=%[2]d\ndataLogDir=%[1]s\ndataLogSize=%[3]d\n", filepath.Dir(file), snapshot, changes)
			if got := word(t, s, "conf"); !strings.Contains(got, want) {
				t.Errorf("conf: %q, want %q in it", got, want)
			}
		}
		look()
		if err := s.Create("/a", nil); err != nil {
			t.Fatal(err)
		}
		if size() == snapshot {
			t.Fatal("nothing is written")
		}
		look()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = start(t, zkserver.Config{FourLetterWords: []string{"*"}, DataFile: file})
		look()
	})
}

// conf shows the session timeouts that SetSessionTimeouts has set.
func TestConfShowsTheSessionTimeouts(t *testing.T) {
	s := start(t, zkserver.Config{FourLetterWords: []string{"conf"}})
	if err := s.Endpoint(1).SetSessionTimeouts(time.Second, 7*time.Second); err != nil {
		t.Fatal(err)
	}
	c := rawDial(t, s)
	c.write([]byte("conf"))
	if all, err := io.ReadAll(c.nc); err != nil || !strings.Contains(string(all), "\nminSessionTimeout=1000\nmaxSessionTimeout=7000\n") {
		t.Errorf("%s, %v", all, err)
	}
}
