package zksync

import (
	"strings"

	"github.com/go-zksync/toolkit/session"
)

const (
	readyName = "ready"
	idPrefix  = "member-" // of a child that is named by WithID
	guidMark  = "_c_"     // of a child that is not, as in session.Protect
)

// A ticket is a participant's child. Its data is what we recognise it by when
// an answer was lost, whatever its name.
type ticket struct {
	path string // empty if there is none
	mark string
}

func (b *DoubleBarrier) newTicket() ticket {
	mark := session.Protect("/")[1:]
	if b.cfg.id != "" {
		return ticket{child(b.path, idPrefix+b.cfg.id), mark}
	}
	return ticket{child(b.path, mark), mark}
}

// isParticipant tells the children that count from those that do not: ours
// have a GUID or an id, Curator's are UUIDs, and kazoo's are UUIDs without dashes.
func isParticipant(name string) bool {
	if guid, ok := strings.CutPrefix(name, guidMark); ok {
		return isUUID(strings.TrimSuffix(guid, "-"))
	}
	return strings.HasPrefix(name, idPrefix) || isUUID(name)
}

func isUUID(s string) bool {
	for i, c := range []byte(s) {
		hex := c >= '0' && c <= '9' || c >= 'a' && c <= 'f'
		dash := c == '-' && len(s) == 36 && (i == 8 || i == 13 || i == 18 || i == 23)
		if !hex && !dash {
			return false
		}
	}
	return len(s) == 36 || len(s) == 32
}
