package tree

import (
	"testing"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/jute"
)

// create is the request that makes a znode which is open to every client.
func create(path string, flags int32) *jute.Request {
	return &jute.Request{Op: jute.OpCreate, Path: path, Data: []byte("x"), ACL: jute.OpenACL, Flags: flags, TTL: -1}
}

// A multi that is rolled back leaves the tree, its ephemerals and its quotas as they were, and takes a zxid.
func TestRollBackRestoresTheTree(t *testing.T) {
	s := &Store{Tree: NewTree(), Rules: Rules{TTL: true, Quota: true, Steps: true}}
	do := func(multi bool, writes ...func(*Txn) jute.Code) *Txn {
		t.Helper()
		txn := s.Begin(SuperUser, 1, multi)
		for i, write := range writes {
			if code := write(txn); code != jute.OK {
				t.Fatalf("write %d: %v", i, code)
			}
		}
		return txn
	}
	makes := func(path string, flags int32) func(*Txn) jute.Code {
		return func(txn *Txn) jute.Code {
			_, _, code := txn.Create(create(path, flags), 7)
			return code
		}
	}
	deletes := func(path string) func(*Txn) jute.Code {
		return func(txn *Txn) jute.Code { return txn.Delete(path, -1) }
	}
	sets := func(path, data string) func(*Txn) jute.Code {
		return func(txn *Txn) jute.Code {
			_, code := txn.SetData(path, []byte(data), -1)
			return code
		}
	}
	for _, path := range []string{"/a", "/a/old", "/zookeeper/quota/a", "/zookeeper/quota/a/zookeeper_limits", "/zookeeper/quota/a/zookeeper_stats"} {
		do(false, makes(path, jute.FlagPersistent))
	}
	do(false, makes("/a/session", jute.FlagEphemeral))
	before, zxid := s.Describe(), s.Zxid
	txn := do(true, makes("/a/new", jute.FlagEphemeral), makes("/a/n-", jute.FlagSequential), sets("/a", "longer"),
		deletes("/a/old"), deletes("/a/session"), makes("/a/old", jute.FlagPersistent))
	if s.Describe() == before {
		t.Fatal("the multi has changed nothing")
	}
	txn.RollBack()
	if after := s.Describe(); after != before {
		t.Errorf("after:\n%s\nbefore:\n%s", after, before)
	}
	if len(txn.Events) > 0 || len(txn.Steps) > 0 || len(txn.Aging) > 0 {
		t.Errorf("a transaction that was rolled back has %d events and %d steps", len(txn.Events), len(txn.Steps))
	}
	if s.Zxid != zxid+1 {
		t.Errorf("zxid %d, want %d", s.Zxid, zxid+1)
	}
}

// The steps of the transactions lead from an empty tree to the same tree.
func TestStepsLeadToTheTree(t *testing.T) {
	s := &Store{Tree: NewTree(), Rules: Rules{TTL: true, Steps: true}}
	again := NewTree()
	for i, write := range []func(*Txn) jute.Code{
		func(txn *Txn) jute.Code { _, _, code := txn.Create(create("/a", 0), 0); return code },
		func(txn *Txn) jute.Code { _, _, code := txn.Create(create("/a/e", jute.FlagEphemeral), 7); return code },
		func(txn *Txn) jute.Code { _, code := txn.SetData("/a", nil, 0); return code },
		func(txn *Txn) jute.Code {
			_, code := txn.SetACL("/a", []jute.ACL{{Perms: jute.PermRead, Scheme: "ip", ID: "127.0.0.1"}}, 0)
			return code
		},
		func(txn *Txn) jute.Code { txn.RemoveEphemerals(7); return jute.OK },
	} {
		txn := s.Begin(SuperUser, 1, false)
		if code := write(txn); code != jute.OK {
			t.Fatalf("write %d: %v", i, code)
		}
		for _, step := range txn.Steps {
			b := AppendStep(nil, step.Kind, step.N)
			d := jute.Decoder{Rest: b[1:]}
			if err := again.Apply(&d, step.Kind); err != nil || d.Bad || len(d.Rest) > 0 {
				t.Fatalf("write %d: %v", i, err)
			}
		}
		if a, b := s.Describe(), again.Describe(); a != b {
			t.Fatalf("write %d:\n%s\nand from its steps\n%s", i, a, b)
		}
	}
}

// The steps of a multi state the final data of each znode once, and lead to the same tree.
func TestStepsOfAMultiStateEachResultOnce(t *testing.T) {
	s := &Store{Tree: NewTree(), Rules: Rules{Steps: true}}
	again := NewTree()
	txn := s.Begin(SuperUser, 1, true)
	for i, write := range []func(*Txn) jute.Code{
		func(txn *Txn) jute.Code { _, _, code := txn.Create(create("/a", 0), 0); return code },
		func(txn *Txn) jute.Code { _, code := txn.SetData("/a", []byte("2"), -1); return code },
		func(txn *Txn) jute.Code { return txn.Delete("/a", -1) },
		func(txn *Txn) jute.Code { _, _, code := txn.Create(create("/a", 0), 0); return code },
		func(txn *Txn) jute.Code { _, _, code := txn.Create(create("/a/b", 0), 0); return code },
		func(txn *Txn) jute.Code { _, code := txn.SetACL("/", jute.OpenACL, -1); return code },
		func(txn *Txn) jute.Code { _, code := txn.SetData("/", []byte("1"), -1); return code },
		func(txn *Txn) jute.Code { _, code := txn.SetData("/", []byte("2"), -1); return code },
		func(txn *Txn) jute.Code { _, code := txn.SetACL("/", jute.OpenACL, -1); return code },
	} {
		if code := write(txn); code != jute.OK {
			t.Fatalf("write %d: %v", i, code)
		}
	}
	number := map[step]int{}
	for _, step := range txn.Steps {
		if number[step]++; number[step] > 1 || step.Kind == StepData && step.N.Path != "/" {
			t.Errorf("a step of kind %d for %s is more than is needed", step.Kind, step.N.Path)
		}
		d := jute.Decoder{Rest: AppendStep(nil, step.Kind, step.N)[1:]}
		if err := again.Apply(&d, step.Kind); err != nil {
			t.Fatal(err)
		}
	}
	if a, b := s.Describe(), again.Describe(); a != b {
		t.Errorf("%s\nand from the steps\n%s", a, b)
	}
}
