//go:build unix

package chaos

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// A note is one line that a client writes immediately, so that the line survives the kill of the
// client.
type note struct {
	At    int64  `json:"t"` // nanoseconds of the machine's clock, which all processes share
	Kind  kind   `json:"k"`
	What  string `json:"w,omitempty"` // the primitive
	Hold  int    `json:"h,omitempty"` // numbers the holds of a client; of a message, its session
	Token int64  `json:"n,omitempty"`
	Units int    `json:"u,omitempty"`
	Text  string `json:"x,omitempty"` // a message, or an error
}

type kind string

const (
	held     kind = "held"     // held it at this time
	still    kind = "still"    // still held it at this time
	ended    kind = "ended"    // held it until this time
	released kind = "released" // released it; the note has the result
	trying   kind = "trying"   // is about to put a message
	put      kind = "put"      // the message is in the queue
	unput    kind = "unput"    // Put failed; the note has the error
	got      kind = "got"
	acked    kind = "acked"
	unacked  kind = "unacked" // Ack failed; the note has the error
	failed   kind = "failed"  // another call failed
)

// A notebook is the file of one client process.
type notebook struct {
	mu   sync.Mutex
	file *os.File
}

func openNotebook(path string) (*notebook, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	return &notebook{file: f}, err
}

func (b *notebook) write(n note) {
	if n.At == 0 {
		n.At = time.Now().UnixNano()
	}
	line, err := json.Marshal(n)
	if err != nil {
		panic(err) // a note always has a JSON form
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, err := b.file.Write(append(line, '\n')); err != nil {
		panic(fmt.Sprintf("a client that cannot take notes proves nothing: %v", err))
	}
}

// A diary has the notes of one client process.
type diary struct {
	client string
	notes  []note
	killed bool // it did not end voluntarily
	paused bool // at least once
}

func readDiary(path string) (diary, error) {
	d := diary{client: strings.TrimSuffix(filepath.Base(path), ".notes")}
	f, err := os.Open(path)
	if err != nil {
		return d, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var n note
		if err := json.Unmarshal(lines.Bytes(), &n); err != nil {
			// Only the last line may be incomplete, because the client was killed while it wrote
			// the line.
			if lines.Scan() {
				return d, fmt.Errorf("%s, line %d: %w", path, len(d.notes)+1, err)
			}
			break
		}
		d.notes = append(d.notes, n)
	}
	return d, lines.Err()
}
