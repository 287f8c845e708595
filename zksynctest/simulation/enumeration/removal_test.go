package enumeration_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/simulation/network"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// remove deletes the ephemeral znodes of the client's session, as an operator does to break a lock.
func (s *stage) remove(f network.Frame) {
	var gone int
	for _, info := range s.server.Sessions() {
		if info.ID != f.Session {
			continue
		}
		for _, path := range info.Ephemerals {
			if s.server.Delete(path) == nil {
				gone++
			}
		}
	}
	if gone == 0 {
		s.void("no ephemeral znode to remove, or no leader")
		return
	}
	s.clients[f.Client].force(f.Session)
}

// wipe deletes the directories of all primitives with everything in them.
func (s *stage) wipe(network.Frame) { s.wipeAll(func(string) bool { return true }) }

// wipeClaims deletes what the consumers of a queue write beside the messages: the claims, and the
// line of the idle consumers.
func (s *stage) wipeClaims(network.Frame) {
	s.wipeAll(func(path string) bool {
		return strings.HasPrefix(path, s.beside("zksync-claims")) || strings.HasPrefix(path, s.beside("zksync-idle"))
	})
}

// wipeAll deletes the znodes of the primitives that which chooses.
func (s *stage) wipeAll(which func(path string) bool) {
	gone := 0
	for path := range s.eachZnode {
		if which(path) && s.server.Delete(path) == nil {
			gone++
		}
	}
	if gone == 0 {
		s.void("no znode to delete, or no leader")
		return
	}
	if s.deleted != nil && which(queuePath) {
		s.deleted()
	}
	for _, c := range s.clients {
		c.force(s.net.Session(c.number))
	}
}

// force records that what the client holds ends without its knowledge.
func (c *client) force(session int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forced = append(c.forced, forcedEnd{session, time.Now()})
}

// A removal is a case of a fault that deletes, changes or protects znodes, or that takes operations from the servers, and its
// effect: a line of the case's report, the path of a znode that is created again, or a part of the log of a request.
type removal struct{ name, line, again, request string }

var removals = map[string]removal{
	"remove":      {"mutex-handover/0.1.up.9/remove", "client 0: Unlock: unlock /locks/m: session: the znode was removed", "", ""},
	"wipe":        {"mutex-handover/0.1.up.9/wipe", "client 1: Unlock: unlock /locks/m: session: the znode was removed", "/locks/m", ""},
	"wipe-claims": {"queue-messages/1.1.up.9/wipe-claims", "", queuePath + "/zksync-claims", ""},

	"steal":  {"queue-messages/1.1.up.9/steal", "another client takes 1, " + queuePath + "/qn-", "", ""},
	"barge":  {"semaphore-handover/1.1.up.9/barge", "another client takes a unit", "", ""},
	"remake": {"delay-messages/1.1.up.12/remake", "another client has created " + queuePath + "/t-", "", ""},

	"withhold-create": {"mutex-handover/0.1.up.6/withhold-create", "(getAcl /locks) does not give CREATE", "", ""},
	"withhold-write":  {"group/0.1.up.8/withhold-write", "(getAcl /groups/g/a) does not give WRITE", "", ""},
	"withhold-delete": {"mutex-handover/0.1.up.7/withhold-delete", "(getAcl /locks/m) does not give DELETE", "", ""},

	"downgrade":       {"mutex-handover/0.1.up.4/downgrade", "", "", "createContainer /locks/m: unimplemented"},
	"downgrade-break": {"mutex-handover/0.1.up.4/downgrade-break", "", "", "[Disconnect BeforeCommit]"},

	"touch":   {"mutex-handover/0.1.up.9/touch", "another client writes 4 znodes again", "", ""},
	"intrude": {"mutex-handover/0.1.up.9/intrude", "another client creates 16 znodes", "", ""},

	"delete-order": {"queue-messages/1.1.up.9/delete-order", "another client changes " + queuePath + "/zksync-claims/order-", "", ""},
	"empty-order":  {"queue-messages/1.1.up.9/empty-order", "another client changes " + queuePath + "/zksync-claims/order-", "", ""},
	"remake-order": {"queue-messages/1.1.up.9/remake-order", "another client changes " + queuePath + "/zksync-claims/order-", "", ""},
}

// The faults that delete or protect znodes have their effects: remove strikes one client, wipe strikes all, and
// clients create again what they need.
func TestRemovalsAreInjected(t *testing.T) {
	for name, r := range removals {
		t.Run(name, func(t *testing.T) {
			c, err := parseCase(r.name)
			if err != nil {
				t.Fatal(err)
			}
			mustHaveEffect(t, c, func(o *outcome, _ network.Address) error {
				if !noted(o, r.line) {
					return fmt.Errorf("no line %q", r.line)
				}
				n, logged := 0, false
				for _, op := range o.ops {
					if made(op, r.again) {
						n++
					}
					logged = logged || strings.Contains(op.String(), r.request)
				}
				if !logged {
					return fmt.Errorf("no request %q", r.request)
				}
				return missing(r.again == "" || n == 2, "%s was created %d times", r.again, n)
			})
		})
	}
}

// made reports whether a request has created the znode at path.
func made(op zkserver.Op, path string) bool {
	if !op.Done || op.Err != 0 {
		return false
	}
	creates := func(code zkserver.OpCode, at string) bool {
		return at == path && (code == zkserver.OpCreate || code == zkserver.OpCreate2 || code == zkserver.OpCreateContainer)
	}
	for _, sub := range op.Sub {
		if creates(sub.Code, sub.Path) {
			return true
		}
	}
	return creates(op.Code, op.Path)
}
