package session_test

import (
	"context"
	"encoding/binary"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
)

// An answer that cannot be decoded leaves no znode behind: it proves neither that a znode is absent nor that another
// session owns the znode. To see this test fail, remove a check of d.Bad from chore.go, or the addition of a chore
// from createProtected or from its function Late.
func TestAnAnswerThatCannotBeDecodedLeavesNothingBehind(t *testing.T) {
	// protected makes a protected create that waits for a second.
	protected := func(t *testing.T, s *session.Session) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if path, err := s.CreateProtected(ctx, "/lock-", nil, 3); err == nil {
			t.Errorf("created %s", path)
		}
	}
	for _, c := range []struct {
		what   string
		broken int32         // the operation whose first answer cannot be decoded
		delay  time.Duration // of the answer to a create
		leave  func(t *testing.T, s *session.Session)
	}{
		{"create", opCreate, 0, protected},
		{"create whose caller has gone", opCreate, 2 * time.Second, protected},
		{"listing behind a lost create", opChildren, time.Hour, protected},
		{"read of our own znode", opGet, 0, func(t *testing.T, s *session.Session) { s.DiscardOwn("/lock-", nil) }},
		{"look for our own znode", opExists, 0, func(t *testing.T, s *session.Session) { s.DiscardCreated("/lock-", 1) }},
	} {
		t.Run(c.what, func(t *testing.T) {
			bounds.Bubble(t, func(t *testing.T) {
				var name []byte // of the znode
				var broken, deletes atomic.Int32
				h := &hostileServer{answer: func(p *hostilePeer, xid, op int32, body []byte) bool {
					answer := p.answerTo(xid, op)
					switch op {
					case opCreate:
						name = body[5 : 4+binary.BigEndian.Uint32(body)]
					case opChildren:
						answer = framed(ints(xid), longs(1), ints(0), ints(1, int32(len(name))), name, make([]byte, 68))
					case opGet, opExists:
						stat := make([]byte, 68)
						binary.BigEndian.PutUint64(stat, 1)      // the creation zxid
						binary.BigEndian.PutUint64(stat[44:], 1) // the owner is the first session
						if op == opGet {
							stat = append(ints(0), stat...) // no data
						}
						answer = framed(ints(xid), longs(1), ints(0), stat)
					case opDelete:
						deletes.Add(1)
					}
					if op == c.broken && broken.Add(1) == 1 {
						answer = framed(ints(xid), longs(1), ints(0), ints(1000))
					}
					if op == opCreate && c.delay > 0 {
						time.AfterFunc(c.delay, func() { p.raw(answer) })
					} else {
						p.raw(answer)
					}
					return true
				}}
				c.leave(t, current(t, connectTo(t, h)))
				if c.delay == time.Hour {
					h.hangUp()
				}
				time.Sleep(time.Minute)
				if broken.Load() == 0 || deletes.Load() == 0 {
					t.Errorf("%d answers, the first of which could not be decoded, and %d deletes", broken.Load(), deletes.Load())
				}
			})
		})
	}
}

// An answer to a ping that reports the end of the session ends the connection, as such an answer to any other request
// does. To see this test fail, have stream.handle pass Header xid <= firstXid in place of ours.
func TestAPingThatIsRefusedEndsTheConnection(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		h := &hostileServer{answer: func(p *hostilePeer, _, op int32, _ []byte) bool {
			if op == opPing {
				p.frame(ints(-2), longs(1), ints(-112))
			}
			return op == opPing
		}}
		connectTo(t, h)
		time.Sleep(4 * time.Second)
		if dials, _ := h.count(); dials != 2 {
			t.Errorf("%d connections in two fifths of a session timeout, want 2", dials)
		}
	})
}

// The answer to a transaction that has failed without an operation that has failed is no success.
func TestMultiOfResultsThatAreRolledBack(t *testing.T) {
	for _, code := range []int32{-2, 0} {
		bounds.Bubble(t, func(t *testing.T) {
			h := &hostileServer{}
			s := current(t, connectTo(t, h))
			h.setAnswer(func(p *hostilePeer, xid, op int32, _ []byte) bool {
				if op != opMulti {
					return false
				}
				rolledBack := append(ints(-1), append([]byte{0}, ints(code, code)...)...)
				p.raw(framed(ints(xid), longs(5), ints(0), rolledBack, rolledBack, ints(-1), []byte{1}, ints(-1)))
				return true
			})
			if results, err := s.Multi(t.Context(), &zk.CreateRequest{Path: "/a"}, &zk.SetDataRequest{Path: "/b"}); err == nil {
				t.Errorf("code %d: results %+v, want an error", code, results)
			}
		})
	}
}
