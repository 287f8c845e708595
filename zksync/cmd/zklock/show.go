package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-zksync/toolkit/zksync"
)

// A participant is the printed form of a zksync.Participant.
type participant struct {
	ID      string                `json:"id"`
	Class   zksync.ContenderClass `json:"class"`
	Holds   bool                  `json:"holds"`
	Session string                `json:"session"` // hexadecimal, as in ZooKeeper's logs
	Token   int64                 `json:"token"`
	Since   time.Time             `json:"since"`
	Client  zksync.Client         `json:"client,omitempty"`
	Path    string                `json:"path"`
}

func shown(p zksync.Participant) participant {
	return participant{
		ID: p.ID, Class: p.Class, Holds: p.Holds, Session: fmt.Sprintf("%#x", uint64(p.Session)),
		Token: p.Token, Since: p.Since.UTC(), Client: p.Client, Path: p.Path,
	}
}

func (p participant) state() string {
	if p.Holds {
		return "holds"
	}
	return "waits"
}

// verb is state before the path.
func (p participant) verb() string {
	if p.Holds {
		return "holds"
	}
	return "waits for"
}

// An entry is the printed form of a zksync.Inspection.
type entry struct {
	Path         string          `json:"path"`
	Kind         zksync.Kind     `json:"kind"`
	Clients      []zksync.Client `json:"clients"`
	Depth        int             `json:"depth"` // participants that wait, or messages
	Participants []participant   `json:"participants"`
	Beside       int             `json:"beside,omitempty"` // the number of contenders of other kinds; the command who alone counts them
}

func entryOf(found *zksync.Inspection) entry {
	e := entry{Path: found.Path, Kind: found.Kind, Clients: found.Clients, Depth: found.Depth, Participants: []participant{}}
	if e.Clients == nil {
		e.Clients = []zksync.Client{}
	}
	for _, p := range found.Participants {
		e.Participants = append(e.Participants, shown(p))
	}
	return e
}

// holders returns the participants that hold.
func (e entry) holders() (all []participant) {
	for _, p := range e.Participants {
		if p.Holds {
			all = append(all, p)
		}
	}
	return all
}

func (e entry) clients() string {
	var names []string
	for _, c := range e.Clients {
		names = append(names, string(c))
	}
	return strings.Join(names, ", ")
}

// age is how long ago a time was, by the servers' clock and ours.
func age(since time.Time) time.Duration { return max(0, time.Since(since).Round(time.Second)) }

// describe says in one line who holds what.
func describe(found *zksync.Inspection) string {
	e := entryOf(found)
	holders := e.holders()
	if len(holders) == 0 {
		return fmt.Sprintf("nobody holds %s", e.Path)
	}
	h := holders[0]
	text := fmt.Sprintf("%s is held by %s (session %s, token %d), in line since %s, %v ago", e.Path, orUnnamed(h.ID), h.Session, h.Token, h.Since.Format(time.RFC3339), age(h.Since))
	if len(holders) > 1 {
		text += fmt.Sprintf(", and by %d others", len(holders)-1)
	}
	return text + fmt.Sprintf("; %d waiting", e.Depth)
}

func orUnnamed(id string) string {
	if id == "" {
		return "an unnamed contender"
	}
	return printable(id)
}

// printable replaces characters that a terminal would take for a command: every client
// that may create a znode chooses the znode's data and parts of its name.
func printable(text string) string {
	if strings.IndexFunc(text, isCommand) < 0 && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if isCommand(r) || r == utf8.RuneError {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func isCommand(r rune) bool { return !unicode.IsGraphic(r) }

// printJSON prints a value in one line, without characters that a terminal would take for
// a command. Everything but strings is ASCII in JSON. An error of w is kept by an output.
func printJSON(w io.Writer, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // no value that is printed can fail
	}
	var b []byte
	for _, r := range string(text) {
		if !isCommand(r) {
			b = utf8.AppendRune(b, r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			b = fmt.Appendf(b, "\\u%04x", unit)
		}
	}
	_, _ = w.Write(append(b, '\n'))
}

// An output keeps the first error of a writer, so that a command whose output could not be
// written does not succeed.
type output struct {
	w   io.Writer
	err error
}

func (o *output) Write(b []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.w.Write(b)
	if err != nil {
		o.err = fmt.Errorf("the output could not be written: %w", err)
	}
	return n, o.err
}

// A table aligns columns.
type table struct{ *tabwriter.Writer }

func newTable(w io.Writer, columns ...string) table {
	t := table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	t.row(columns...)
	return t
}

func (t table) row(cells ...string) {
	for i, cell := range cells {
		if cell == "" {
			cell = "-"
		}
		cells[i] = printable(cell)
	}
	fmt.Fprintln(t, strings.Join(cells, "\t"))
}
