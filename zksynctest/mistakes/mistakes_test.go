package mistakes

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/zksynctest"
)

var update = flag.Bool("update", false, "write the table to docs/mistakes.md")

func TestMain(m *testing.M) {
	flag.Parse()
	servers.AtOnce(8)
	goleak.VerifyTestMain(zksynctest.StopSharedAfter(m))
}

// The first log line or error of each misconfiguration and outage comes within four seconds and
// states the cause, and so does the error of the call.
func TestMistakesAndOutages(t *testing.T) {
	bounds.Long(t)
	const limit = 4 * time.Second
	var mu sync.Mutex
	seen := make(map[string]outcome)
	t.Run("cases", func(t *testing.T) {
		for _, c := range troubles {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				o := run(t, c)
				if o.err == nil || o.err.Error() == "connected" {
					t.Fatalf("error %v, want a failure; first line %q", o.err, o.line)
				}
				if o.first > limit {
					t.Errorf("the first sign came after %v, want %v at most", o.first, limit)
				}
				if !strings.Contains(o.line+" "+o.err.Error(), c.says) {
					t.Errorf("want %q in the line or the error", c.says)
				}
				t.Logf("after %v\nline  %s\nerror %v", o.first.Round(time.Millisecond), o.line, o.err)
				mu.Lock()
				defer mu.Unlock()
				seen[c.name] = o
			})
		}
	})
	if len(troubles) < 25 {
		t.Errorf("%d cases, want 25 at least", len(troubles))
	}
	if t.Failed() || !*update {
		return
	}
	if err := write(table(seen)); err != nil {
		t.Fatal(err)
	}
}

// Each case has a row in docs/mistakes.md.
func TestEachCaseIsDocumented(t *testing.T) {
	page, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range troubles {
		if !strings.Contains(string(page), "| "+c.name+" |") {
			t.Errorf("%s has no row for %q: run the tests with -update", document, c.name)
		}
	}
}

const (
	document = "../../docs/mistakes.md"
	heading  = "# Mistakes and outages\n"
)

// table returns the page with the outcomes.
func table(seen map[string]outcome) string {
	var b strings.Builder
	b.WriteString(heading + `
The table has the first sign of each mistake or outage in a test: a log line at WARN or ERROR, or the error of the call.
` + "`go test ./zksynctest/mistakes -update`" + ` writes the table. Each sign comes within four seconds. "0 s" means at once, and "3 s" is
the first report of a wait.

| mistake | after | first sign | action |
|---|---|---|---|
`)
	for _, c := range troubles {
		o := seen[c.name]
		sign := o.line
		if sign == "" {
			sign = o.err.Error()
		}
		fmt.Fprintf(&b, "| %s | %.0f s | %s | %s |\n", c.name, o.first.Seconds(), short(stable(sign), c.says), c.action)
	}
	return b.String()
}

// short cuts a text to the part around the required words.
func short(s, says string) string {
	const before, most = 60, 150
	s = strings.ReplaceAll(strings.ReplaceAll(s, "|", "\\|"), "`", "'")
	at := max(0, strings.Index(s, says))
	start := max(0, at-before)
	if start > 0 {
		start += max(0, strings.IndexByte(s[start:], ' ')+1)
	}
	end := min(len(s), start+most)
	text := strings.ToValidUTF8(s[start:end], "")
	if start > 0 {
		text = "… " + text
	}
	if end < len(s) {
		text += " …"
	}
	return "`" + text + "`"
}

// write replaces the section of the table in the page.
func write(section string) error {
	page, err := os.ReadFile(document)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	text := string(page)
	start := strings.Index(text, heading)
	if start < 0 {
		text = strings.TrimLeft(strings.TrimRight(text, "\n")+"\n\n"+section, "\n")
		return os.WriteFile(document, []byte(text), 0o644)
	}
	rest := text[start+len(heading):]
	end := strings.Index(rest, "\n# ")
	if end < 0 {
		return os.WriteFile(document, []byte(text[:start]+section), 0o644)
	}
	return os.WriteFile(document, []byte(text[:start]+section+rest[end:]), 0o644)
}
