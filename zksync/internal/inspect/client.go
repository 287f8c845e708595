package inspect

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/go-zksync/toolkit/zksync/internal/line"
	"github.com/go-zksync/toolkit/zksync/internal/rendezvous"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// The client libraries that have left a znode.
const (
	ClientZksync          = "zksync"
	ClientCurator         = "Curator"
	ClientZksyncOrCurator = "zksync or Curator"
	ClientKazoo           = "kazoo"
	ClientGoZookeeper     = "go-zookeeper"
	ClientRecipe          = "ZooKeeper recipe"
)

// clientOf guesses the client library of a participant. It returns "" if any client may
// have created the znode.
func clientOf(kind Kind, c line.Listed) string {
	name := c.Name
	guid, protected := strings.CutPrefix(name, znode.ProtectedPrefix)
	switch {
	case kind == Queue:
		return ClientZksync // only ours show their consumers
	case kind == Group || kind == Election && !protected:
		return ""
	case kind == DoubleBarrier:
		return barrierClient(name)
	case !protected && (strings.HasPrefix(name, "x-")):
		return ClientRecipe
	case !protected && (strings.Contains(name, line.Kazoo.Lock) || strings.Contains(name, line.Kazoo.Reader) || znode.IsUUID(name)):
		return ClientKazoo
	case !protected:
		return ""
	case len(guid) < 36 || !znode.IsUUID(guid[:36]):
		return ClientGoZookeeper // its GUIDs have no dashes
	case strings.Contains(name, line.Kazoo.Lock) || strings.Contains(name, line.Kazoo.Reader):
		return ClientZksync // with LayoutKazoo
	case c.Class == line.Unit && znode.Base(c.Dir) != "leases":
		return ClientZksync // with LayoutKazoo, too
	}
	return byData(string(c.Data))
}

// byData tells Curator from zksync by the data of a znode. Curator writes the address of
// its host, unless the program sets an id, and zksync writes "host:pid".
func byData(id string) string {
	if _, err := netip.ParseAddr(id); err == nil || id == "" {
		return ClientCurator
	}
	if i := strings.LastIndexByte(id, ':'); i > 0 && isNumber([]byte(id[i+1:])) {
		return ClientZksync
	}
	return ClientZksyncOrCurator
}

func barrierClient(name string) string {
	switch {
	case strings.HasPrefix(name, znode.ProtectedPrefix) || strings.HasPrefix(name, rendezvous.IDPrefix):
		return ClientZksync
	case strings.Contains(name, "-"):
		return ClientCurator
	}
	return ClientKazoo
}

// clients guesses the client libraries of a path by the names in its directory, if no
// participant tells.
func (i *inspector) clients(kind Kind) []string {
	has := func(prefix string) bool {
		return slices.ContainsFunc(i.names, func(name string) bool { return strings.HasPrefix(name, prefix) })
	}
	switch {
	case kind != Queue:
	case has(ownQueuePrefix):
		return []string{ClientZksync}
	case has(kazooQueuePrefix) || slices.Contains(i.names, kazooTaken):
		return []string{ClientKazoo}
	case has(curatorQueuePrefix):
		return []string{ClientCurator}
	}
	return nil
}
