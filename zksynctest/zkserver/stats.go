package zkserver

import (
	"math"
	"strconv"
	"time"
)

// packetStats counts what goes over one connection, or over all of an endpoint. Guarded
// by the server's mu, as is all in this file.
type packetStats struct {
	received, sent int64
	latency        latencyStats
}

// latencyStats is in whole milliseconds. What no fault delays takes none.
type latencyStats struct{ min, max, total, count int64 }

func (l *latencyStats) add(d time.Duration) {
	ms := d.Milliseconds()
	if l.count == 0 || ms < l.min {
		l.min = ms
	}
	l.max = max(l.max, ms)
	l.total += ms
	l.count++
}

// average has at most four digits behind the point, and at least one, as Java
// writes it.
func (l *latencyStats) average() string {
	avg := 0.0
	if l.count > 0 {
		avg = math.Round(float64(l.total)/float64(l.count)*10000) / 10000
	}
	text := strconv.FormatFloat(avg, 'f', -1, 64)
	if avg == math.Trunc(avg) {
		text += ".0"
	}
	return text
}

// connStats is what cons shows of a connection.
type connStats struct {
	packetStats
	lastOp   OpCode // 0 if there was none
	lastXid  int32  // -1 if there was none that counts
	lastZxid int64
	lastTime time.Time
	lastMs   int64
}

func newConnStats() connStats { return connStats{lastXid: -1, lastZxid: -1} }

// opAbbreviations are the names that cons has for the last operation.
var opAbbreviations = map[OpCode]string{
	OpConnect: "SESS", OpPing: "PING", OpMulti: "MULT", OpMultiRead: "MLTR",
	OpCreate: "CREA", OpCreate2: "CREA", OpCreateContainer: "CREA", OpCreateTTL: "CREA",
	OpDelete: "DELE", OpDeleteContainer: "DELE", OpSetData: "SETD", OpSetACL: "SETA",
	OpReconfig: "RECO", OpCloseSession: "CLOS", OpSync: "SYNC", OpCheck: "CHEC",
	OpExists: "EXIS", OpGetData: "GETD", OpGetACL: "GETA", OpGetChildren: "GETC",
	OpGetChildren2: "GETC", OpGetAllChildrenNumber: "GETACN", OpGetEphemerals: "GETE",
	OpSetWatches: "SETW", OpSetWatches2: "STW2", OpAddWatch: "ADDW",
	OpCheckWatches: "CHKW", OpRemoveWatches: "REMW", OpWhoAmI: "HOMI",
}

func (st *connStats) lastName() string {
	if name, ok := opAbbreviations[st.lastOp]; ok {
		return name
	}
	return "NA"
}
