package enumeration_test

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest/simulation/surroundings"
)

// directories lists the directories of the primitives that the scenarios use, by the beginnings of
// the scenarios' names. The first beginning that fits counts.
var directories = []struct{ begin, dirs string }{
	{"mutex-do", "/locks/outer /locks/inner"},
	{"mutex", "/locks/m"},
	{"rwmutex", "/locks/rw"},
	{"semaphore", "/locks/s /locks/s/locks /locks/s/leases"},
	{"election-ephemeral", ""},
	{"election", "/elections/e"},
	{"leader", "/elections/e"},
	{"group", "/groups/g"},
	{"members", "/groups/g"},
	{"doublebarrier", "/barriers/b"},
	{"queue", "/queues/q /queues/target"},
	{"priority", "/queues/q /queues/q/p-007 /queues/target"},
	{"delay", "/queues/q /queues/target"},
}

// directories returns the directories of the primitives that the scenario uses, each behind the
// directory above it.
func (s *scenario) directories() []string {
	for _, d := range directories {
		if strings.HasPrefix(s.name, d.begin) {
			return strings.Fields(d.dirs)
		}
	}
	return nil
}

func (s *scenario) hasDirectories() bool { return len(s.directories()) > 0 }

// asOther lets another client, with a credential of its own, change the tree before the scenario
// begins.
func (s *stage) asOther(do func(ctx context.Context, by *session.Session) error) {
	m, err := session.Connect(s.ctx, "10.0.0.1", session.WithDialer(s.server.Endpoint(1).Dial), session.WithAuth("digest", []byte("other:secret")))
	if err == nil {
		defer m.Close()
		err = m.Do(s.ctx, do)
	}
	if err != nil {
		s.fail("set up the world: %v", err)
	}
}

// createDirectories creates the directories of the scenario with some permissions for the clients,
// and the directories above them with others.
func (s *stage) createDirectories(above, own int32) {
	of := s.of.scenario.directories()
	s.asOther(func(ctx context.Context, by *session.Session) error {
		create := func(dir string, perms int32) error {
			acl := zk.AuthACL(zk.PermAll)
			if perms != 0 {
				acl = append(acl, zk.WorldACL(perms)...)
			}
			_, err := by.Create(ctx, dir, nil, zk.FlagPersistent, acl...)
			return err
		}
		if err := create(path.Dir(of[0]), above); err != nil {
			return err
		}
		for _, dir := range of {
			if err := create(dir, own); err != nil {
				return err
			}
		}
		return nil
	})
}

// foreign are names in the directories of the primitives that no primitive uses.
var foreign = []string{"config", "secret", "-0000000000", "x-lock-", "x-lock-12345", "qn-", "qn-000000000x", "zksync-other"}

// crowd creates the directories of the scenario with data, and znodes of other programs in all of them. The
// first of them is large, and the second may not be read. Every child of the directory of a group is a
// member.
func crowd(s *stage) {
	large := bytes.Repeat([]byte("x"), 16*smallest)
	fill := func(ctx context.Context, by *session.Session, dir string) error {
		for i, name := range foreign {
			data, acl := []byte(nil), zk.WorldACL(zk.PermAll)
			switch i {
			case 0:
				data = large
			case 1:
				acl = zk.AuthACL(zk.PermAll)
			}
			if _, err := by.Create(ctx, strings.TrimSuffix(dir, "/")+"/"+name, data, zk.FlagPersistent, acl...); err != nil {
				return err
			}
		}
		return nil
	}
	s.asOther(func(ctx context.Context, by *session.Session) error {
		if err := fill(ctx, by, "/"); err != nil {
			return err
		}
		for _, dir := range []string{"/locks", "/elections", "/groups", "/services", "/gates", "/barriers", "/queues"} {
			if _, err := by.Create(ctx, dir, nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll)...); err != nil {
				return err
			}
			if err := fill(ctx, by, dir); err != nil {
				return err
			}
		}
		for _, dir := range s.of.scenario.directories() {
			if _, err := by.Create(ctx, dir, theirs(dir), zk.FlagPersistent, zk.WorldACL(zk.PermAll)...); err != nil {
				return err
			}
			if path.Dir(dir) == "/groups" {
				continue
			}
			if err := fill(ctx, by, dir); err != nil {
				return err
			}
		}
		return nil
	})
}

// fillClaims puts messages into the directory of the scenario that the clients may not read. Each of them has an
// entry in the claim table, and all entries together do not fit into half of the smallest request.
func fillClaims(s *stage) {
	const first, n = 1_000_000_000, 40
	s.createDirectories(zk.PermAll, zk.PermAll)
	of := s.of.scenario.directories()
	dir := of[len(of)-2] // before the target
	s.asOther(func(ctx context.Context, by *session.Session) error {
		for i := range n {
			name := fmt.Sprintf("/qn-%010d", first+2*i)
			if _, err := by.Create(ctx, dir+name, []byte(secret), zk.FlagPersistent, zk.AuthACL(zk.PermAll)...); err != nil {
				return err
			}
		}
		return nil
	})
	if err := s.server.SetNextSequence(s.server.at(dir), first+2*n); err != nil {
		s.fail("%v", err)
	}
}

// theirs returns the data that another program has in a directory. A line leaves data there that it finds
// at its first use.
func theirs(dir string) []byte {
	if strings.HasPrefix(dir, "/locks/") || strings.HasPrefix(dir, "/elections/") {
		return []byte("theirs")
	}
	return nil
}

// checkData checks that the data of the directories have stayed.
func checkData(s *stage) {
	for _, dir := range s.of.scenario.directories() {
		data, there := s.server.Get(dir)
		if want := theirs(dir); there && !bytes.Equal(data, want) && s.harm()&wipes == 0 {
			s.fail("the data of %s are %q, want %q", dir, data, want)
		}
	}
}

// numbersLeft returns how many numbers below the last one a directory has left when it was created in
// the world spent. A queue needs three for directories of its own, one of which it deletes again, and an acquisition
// of two units needs two.
// Four messages have to fit where the scenario puts them before its consumers begin.
func (s *scenario) numbersLeft(dir string) (left int32) {
	left = 1
	if path.Base(dir) == "leases" {
		left = 2
	}
	if strings.HasSuffix(s.name, "-two") {
		left = 3
	}
	if path.Dir(dir) == "/queues" {
		left += 3
	}
	return left
}

// spendNumbers makes each directory that a client creates begin with a counter that is nearly spent.
func spendNumbers(s *stage) { surroundings.SpendNumbers(s.server, s.of.scenario.numbersLeft) }
