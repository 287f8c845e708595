package zkserver

import (
	"math"
	"strconv"
	"time"
)

// packetStats counts the packets of one connection, or of an endpoint. The server's mu guards all
// types of this file.
type packetStats struct {
	received, sent int64
	latency        latencyStats
}

// latencyStats is in whole milliseconds. A request that no fault delays takes 0 ms.
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

// average formats the mean with one to four digits after the decimal point, like Java.
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

// connStats is the data of a connection that cons prints.
type connStats struct {
	packetStats
	lastOp   OpCode // 0 before the first request
	lastXid  int32  // -1 before the first request with a non-negative xid
	lastZxid int64
	lastTime time.Time
	lastMs   int64
}

func newConnStats() connStats { return connStats{lastXid: -1, lastZxid: -1} }

// opAbbreviations has the names of operations in cons.
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
