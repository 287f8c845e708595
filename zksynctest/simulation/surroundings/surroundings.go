package surroundings

import (
	"math"
	"strings"
	"sync"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// New35 lists the operations that ZooKeeper 3.4 does not know.
var New35 = []zkserver.OpCode{
	zkserver.OpCreate2, zkserver.OpReconfig, zkserver.OpCheckWatches, zkserver.OpRemoveWatches, zkserver.OpCreateContainer,
	zkserver.OpDeleteContainer, zkserver.OpCreateTTL, zkserver.OpMultiRead, zkserver.OpGetEphemerals,
	zkserver.OpGetAllChildrenNumber, zkserver.OpSetWatches2, zkserver.OpAddWatch, zkserver.OpWhoAmI,
}

// A Server is a server whose directories can begin with a counter that is nearly spent.
type Server interface {
	Inject(f zkserver.Fault) *zkserver.Injection
	SetNextSequence(path string, n int32) error
}

// SpendNumbers leaves each directory that a client creates a few numbers: as many as left returns.
func SpendNumbers(srv Server, left func(dir string) int32) {
	var mu sync.Mutex
	var created []string
	note := func(op zkserver.Op) bool {
		mu.Lock()
		defer mu.Unlock()
		before := len(created)
		for _, sub := range append(op.Sub, zkserver.SubOp{Code: op.Code, Path: op.Path}) {
			if op.Zxid != 0 && op.Err == 0 && IsDirectory(sub) {
				created = append(created, sub.Path)
			}
		}
		return len(created) > before
	}
	srv.Inject(zkserver.Fault{At: zkserver.AfterCommit, Times: -1, Match: note, Do: zkserver.Call(func() {
		mu.Lock()
		defer mu.Unlock()
		for _, dir := range created {
			_ = srv.SetNextSequence(dir, math.MaxInt32-left(dir)) // fails if it is gone again
		}
		created = nil
	})})
}

// IsDirectory reports whether an operation creates a directory. The names of sequential znodes end in
// a mark before the number. The counters of the claims and of the markers count sessions and writers, and are
// never spent.
func IsDirectory(op zkserver.SubOp) bool {
	switch op.Code {
	case zkserver.OpCreate, zkserver.OpCreate2, zkserver.OpCreateContainer:
		return !strings.HasSuffix(op.Path, "-") && !strings.HasSuffix(op.Path, "_") &&
			!strings.Contains(op.Path, "/zksync-claims") && !strings.Contains(op.Path, "/zksync-markers")
	}
	return false
}

// LimitDirectories lets the directories below the root have no more znodes and bytes than they have.
// It returns the paths of the limits, whose deletion ends that.
func LimitDirectories(srv *zkserver.Server) (limits []string) {
	names, _ := srv.Children("/")
	for _, name := range names {
		if name == "zookeeper" {
			continue
		}
		dir := "/zookeeper/quota/" + name
		limit := dir + "/zookeeper_limits"
		// An earlier quota leaves the first two. Without a leader none can be made.
		_, _ = srv.Create(dir, nil), srv.Create(dir+"/zookeeper_stats", nil)
		if srv.Create(limit, []byte("count=-1,bytes=-1=;byteHardLimit=1;countHardLimit=1")) == nil {
			limits = append(limits, limit)
		}
	}
	return limits
}
