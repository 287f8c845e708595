package rendezvous

import (
	"context"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// guardName ends the names of guards. They are no names of participants, see IsParticipant.
const guardName = "guard"

// isGuard reports whether a name is the name of a guard.
func isGuard(name string) bool {
	return strings.HasPrefix(name, znode.ProtectedPrefix) && strings.HasSuffix(name, "-"+guardName)
}

// clear ends a round whose participants have all left: it deletes ready, unless the directory
// has changed since it was seen empty. It is not an error if the directory has changed, or if
// the outcome is unknown.
//
// The transaction that deletes ready may be under way for so long that the directory is deleted
// and created again, and reaches the same version. So clear creates a guard first, and counts the
// participants beside the guard. The transaction deletes the guard, too, so it fails in any
// other directory than the one that was counted.
func (v *barrierView) clear(ctx context.Context) (cleared bool, err error) {
	guard := znode.Join(v.b.path, session.Protect("/" + guardName)[1:])
	// Curator and kazoo count a guard as a participant. So it is created during a round only.
	inRound := &zk.CheckVersionRequest{Path: v.readyPath(), Version: -1}
	_, err = v.transact(v.unchanged(), inRound, &zk.CreateRequest{Path: guard, Flags: zk.FlagEphemeral})
	switch session.ClassOf(err) {
	case session.ClassOK:
		cleared, err = v.clearBeside(ctx, guard)
	case session.ClassBadVersion, session.ClassNoNode:
		return false, nil // no guard was created
	}
	if cleared {
		return true, nil
	}
	// With a touch: the janitor sends none, so the participants of the next round would take the guard
	// for a child of another program.
	if _, failed := v.transact(&zk.DeleteRequest{Path: guard, Version: -1}); failed != nil {
		v.s.DiscardOwn(guard, nil)
	}
	return false, unlessRaced(err, session.ClassNoNode)
}

// clearBeside is clear after the creation of the guard, which is the last change that v has seen.
func (v *barrierView) clearBeside(ctx context.Context, guard string) (cleared bool, err error) {
	// Two children are the guard and ready, which the creation of the guard has checked.
	if v.count > 2 {
		// The others may all be strange.
		if there, _, err := v.list(ctx); err != nil || there > 0 {
			return false, err
		}
	}
	// Two touches, one for each child, keep the drift; see note.
	_, err = v.transact(v.unchanged(), &zk.DeleteRequest{Path: guard, Version: -1}, v.touch(), &zk.DeleteRequest{Path: v.readyPath(), Version: -1})
	return err == nil, err
}
