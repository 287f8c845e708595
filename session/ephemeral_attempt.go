package session

import (
	"bytes"
	"context"
	"math"

	"github.com/go-zookeeper/zk"
)

// An attempt is what an Ephemeral knows of the znode that it has created under a session, or may have created. The
// path may also have an ephemeral that another part of the program has created in the same session, so the owner
// alone identifies no znode. The zero value stands for no attempt.
//
// A create with an answer identifies its znode by the creation zxid, which is above every zxid that the session had
// seen before the create, and not above the zxid of the answer. Of a create without an answer only the first bound is
// known, so its znode must also have version 0 and the data of that create. Another part of the program that creates
// an ephemeral with the same data at the same path meanwhile cannot be told from the Ephemeral. A znode of ours that
// another client has written to before we look is a Conflict until it goes: to take it could delete a znode of
// somebody else.
type attempt struct {
	after int64    // the creation zxid is greater
	until int64    // of the create with an answer; 0 if there is none
	lost  [][]byte // the data of the creates without an answer
}

// anyZxid is not below any zxid.
const anyZxid int64 = math.MaxInt64

// happened reports whether the znode may have been created.
func (a *attempt) happened() bool { return a.until != 0 || len(a.lost) > 0 }

// succeed records the answer to a create that began behind the zxid began.
func (a *attempt) succeed(began, zxid int64) { *a = attempt{after: began, until: zxid} }

// lose records a create whose answer was lost.
func (a *attempt) lose(began int64, data []byte) {
	if !a.happened() {
		a.after = began
	}
	a.lost = append(a.lost, data)
}

// mayOwn reports whether the znode with stat may be the znode of the attempt. It is certain unless an answer was lost.
func (a *attempt) mayOwn(s *Session, stat *zk.Stat) bool {
	return stat.EphemeralOwner == s.id && stat.Czxid > a.after && (stat.Czxid <= a.until || len(a.lost) > 0)
}

// owns reports whether the znode with stat is the znode of the attempt, and then remembers its creation zxid. It
// reads the data if an answer was lost.
func (a *attempt) owns(ctx context.Context, s *Session, path string, stat *zk.Stat) (bool, error) {
	if !a.mayOwn(s, stat) {
		return false, nil
	}
	if stat.Czxid > a.until {
		data, now, err := s.Get(ctx, path)
		switch ClassOf(err) {
		case ClassOK:
			if now.Czxid != stat.Czxid || now.Version != 0 || !a.hasLost(data) {
				return false, nil
			}
		case ClassNoNode:
			return false, nil
		case ClassNoAuth: // nothing but the owner can be known
		default:
			return false, err
		}
	}
	a.succeed(stat.Czxid-1, stat.Czxid)
	return true, nil
}

// hasLost reports whether a create without an answer had the data.
func (a *attempt) hasLost(data []byte) bool {
	for _, lost := range a.lost {
		if bytes.Equal(lost, data) {
			return true
		}
	}
	return false
}
