package differential

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// versionDifference is a difference between releases of ZooKeeper. The embedded server behaves like
// 3.9.
type versionDifference struct {
	name    string
	reason  string
	fixedIn release // a later release of line 3.8 may have it too, which makes no difference here
	// same reports whether two answers differ by this difference alone, so that the later answers
	// can be compared. It is nil for a difference that changes later answers.
	same func(theirs, ours frame) bool
	// shows is a sequence that shows this difference and no other.
	shows string
	// explains reports whether this difference explains the first mismatch of a sequence. The rest
	// of the sequence is then compared with Compat38 only.
	explains func(m *mismatch, steps []step) bool
}

// versionDifferences lists all known differences. testVersionDifferences shows each of them.
var versionDifferences = []versionDifference{
	{
		name:    "zxid of events",
		reason:  "ZOOKEEPER-4655: since 3.9.0 the header of an event has the zxid of the transaction, before it was -1",
		shows:   "0 exists ~/a watch\n0 create ~/a",
		fixedIn: release{3, 9, 0},
		same: func(theirs, ours frame) bool {
			if theirs.op != "event" || ours.op != "event" || theirs.zxid != "-1" {
				return false
			}
			ours.zxid = theirs.zxid
			return theirs.String() == ours.String()
		},
	},
	{
		name:    "create2 within a multi",
		reason:  "ZOOKEEPER-4026: before 3.8.2 and 3.9.0 its result was that of a create, without a Stat",
		shows:   "0 multi [create2 ~/a; create ~/b]",
		fixedIn: release{3, 8, 2},
		same: func(theirs, ours frame) bool {
			if theirs.op != "multi" || len(theirs.fields) != len(ours.fields) {
				return false
			}
			theirs.fields, ours.fields = slices.Clone(theirs.fields), slices.Clone(ours.fields)
			for i, field := range ours.fields {
				path, _, created := strings.Cut(field, " stat ")
				if rest, ok := strings.CutPrefix(path, "(15/0 "); created && ok && theirs.fields[i] == "(1/0 "+rest+")" {
					ours.fields[i] = theirs.fields[i]
				}
			}
			return theirs.String() == ours.String()
		},
	},
	{
		name:    "exists needs READ",
		reason:  "ZOOKEEPER-2590: before 3.8.4 and 3.9.2 exists looked at no ACL",
		shows:   "0 create ~/a acl=noread\n1 exists ~/a",
		fixedIn: release{3, 8, 4},
		explains: func(m *mismatch, _ []step) bool {
			return m.theirs.op == "exists" && m.theirs.err == 0 && m.ours.err == -102
		},
	},
	{
		name:    "types of watches",
		reason:  "ZOOKEEPER-4466: since 3.9.0 removeWatches and checkWatches know the types 4 and 5",
		shows:   "0 exists ~/a watch\n0 checkWatches ~/a type=4",
		fixedIn: release{3, 9, 0},
		explains: func(m *mismatch, steps []step) bool {
			s := stepOf(m.theirs, steps)
			return s != nil && (s.op == "removeWatches" || s.op == "checkWatches") &&
				(s.num("type", 0) == 4 || s.num("type", 0) == 5) &&
				m.theirs.err == -5 && (m.ours.err == 0 || m.ours.err == -121)
		},
	},
	{
		name: "checkWatches",
		reason: "ZOOKEEPER-4466: before 3.9.0 it succeeded when any connection had the watch, and fell over paths " +
			"that have no slash",
		shows:   "0 exists ~/a watch\n1 checkWatches ~/a type=2",
		fixedIn: release{3, 9, 0},
		explains: func(m *mismatch, steps []step) bool {
			if m.theirs.op != "checkWatches" || m.ours.err != -121 {
				return false
			}
			s := stepOf(m.theirs, steps)
			return m.theirs.err == 0 || m.theirs.err == -5 && !strings.ContainsAny(s.path, "~/")
		},
	},
	{
		name: "one mode a path",
		reason: "ZOOKEEPER-4466: before 3.9.0 a connection had one mode of watch for a path, so that a getData made a persistent " +
			"watch one that fires once, and a type named one that was left in another mode",
		shows:   "0 create ~/a\n1 addWatch ~/a\n1 getData ~/a watch\n0 setData ~/a\n0 setData ~/a",
		fixedIn: release{3, 9, 0},
		explains: func(m *mismatch, steps []step) bool {
			s := stepOf(m.theirs, steps)
			named := s != nil && (s.op == "removeWatches" || s.op == "checkWatches")
			return (m.theirs.op == "event" || m.ours.op == "event" || named) && mixesModes(steps)
		},
	},
}

func stepOf(f frame, steps []step) *step {
	if f.step < 1 || f.step > len(steps) {
		return nil
	}
	return &steps[f.step-1]
}

// mixesModes reports whether a client has both a watch by addWatch and another watch for a path.
func mixesModes(steps []step) bool {
	type place struct {
		client int
		path   string
	}
	modes := map[place]string{}
	mixed := false
	note := func(client int, mode string, paths ...string) {
		for _, path := range paths {
			at := place{client, path}
			mixed = mixed || modes[at] != "" && modes[at] != mode
			modes[at] = mode
		}
	}
	for i := range steps {
		s := &steps[i]
		if _, ok := s.args["watch"]; ok {
			note(s.client, "once", s.path)
		}
		switch s.op {
		case "addWatch":
			note(s.client, "mode "+s.arg("mode", "0"), s.path)
		case "setWatches", "setWatches2":
			note(s.client, "once", s.list("data")...)
			note(s.client, "once", s.list("exist")...)
			note(s.client, "once", s.list("child")...)
			note(s.client, "mode 0", s.list("persistent")...)
			note(s.client, "mode 1", s.list("recursive")...)
		case "removeWatches", "checkWatches":
			if s.arg("type", "3") != "3" {
				note(s.client, "type", s.path)
			}
		}
	}
	return mixed
}

// equalise returns a function that reports whether two different answers differ only by a
// difference between releases.
func equalise(have release) func(theirs, ours frame) bool {
	return func(theirs, ours frame) bool {
		return slices.ContainsFunc(versionDifferences, func(v versionDifference) bool {
			return v.same != nil && have.before(v.fixedIn) && v.same(theirs, ours)
		})
	}
}

// excuse returns the difference between releases that explains a mismatch, or nil.
func (m *mismatch) excuse(steps []step, have release) *versionDifference {
	for i := range versionDifferences {
		v := &versionDifferences[i]
		if v.explains != nil && have.before(v.fixedIn) && v.explains(m, steps) {
			return v
		}
	}
	return nil
}

// testVersionDifferences shows that every difference of the table exists, and is no greater than
// the table says.
func (p *pair) testVersionDifferences(t *testing.T) {
	for i := range versionDifferences {
		v := &versionDifferences[i]
		t.Run(v.name, func(t *testing.T) {
			steps, err := parse(v.shows)
			if err != nil {
				t.Fatal(err)
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			root := parent + "/version-" + strconv.Itoa(i)
			theirs, err := p.real.play(steps, root)
			if err != nil {
				t.Fatal(err)
			}
			ours, err := p.plain.play(steps, root)
			if err != nil {
				t.Fatal(err)
			}
			if len(p.targets()) > 2 {
				if _, err := p.old.play(steps, root); err != nil { // keeps the zxids of the servers equal
					t.Fatal(err)
				}
			}
			m := compare(theirs, ours, nil)
			switch {
			case !p.release.before(v.fixedIn):
				if m != nil {
					t.Errorf("release %v should do as 3.9: %v and not %v", p.release, m.theirs, m.ours)
				}
			case m == nil:
				t.Errorf("no difference: %v", theirs)
			case v.same != nil && !v.same(m.theirs, m.ours), v.explains != nil && m.excuse(steps, p.release) != v:
				t.Errorf("it is another difference: %v and %v", m.theirs, m.ours)
			case v.same != nil && v.same(m.theirs, frame{}), v.explains != nil && v.explains(&mismatch{}, steps):
				t.Error("it explains too much")
			}
		})
	}
}
