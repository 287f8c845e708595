package session

import (
	"math"

	"github.com/go-zookeeper/zk"
)

// An attempt is what an Ephemeral knows of the znode that it has created under a session, or may have created. The
// path may also have an ephemeral that another part of the program has created in the same session, so the owner
// alone identifies no znode. The zero value stands for no attempt.
//
// The creation zxid of the znode is above every zxid that the session had seen before the create, and not above the
// zxid of the answer. Without an answer only the first bound is known: an ephemeral that another part of the program
// creates at the path later cannot be told from the znode.
type attempt struct {
	after int64 // the creation zxid is greater
	until int64 // and not greater than this; 0 if there was no attempt
}

// anyZxid is not below any zxid.
const anyZxid int64 = math.MaxInt64

// happened reports whether the znode may have been created.
func (a *attempt) happened() bool { return a.until != 0 }

// lose records a create whose answer was lost, and which began behind the zxid began.
func (a *attempt) lose(began int64) {
	if !a.happened() {
		a.after = began
	}
	a.until = anyZxid
}

// owns reports whether the znode with stat is the znode of the attempt, and then remembers its creation zxid.
func (a *attempt) owns(s *Session, stat *zk.Stat) bool {
	if stat.EphemeralOwner != s.id || stat.Czxid <= a.after || stat.Czxid > a.until {
		return false
	}
	*a = attempt{after: stat.Czxid - 1, until: stat.Czxid}
	return true
}
