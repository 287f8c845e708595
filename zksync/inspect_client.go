package zksync

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/go-zksync/toolkit/zksync/internal/line"
	"github.com/go-zksync/toolkit/zksync/internal/rendezvous"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A Client is a client library, as far as a znode tells: the name of the znode tells
// the layout, and the data tells Curator, which writes the address of its host unless
// the program sets an id, from this package, which writes "host:pid" unless WithID
// says otherwise.
type Client string

const (
	// ClientZksync is this package.
	ClientZksync Client = "zksync"
	// ClientCurator is Apache Curator.
	ClientCurator Client = "Curator"
	// ClientZksyncOrCurator is one of both: their znodes have the same names, and the
	// data is neither an address nor a "host:pid".
	ClientZksyncOrCurator Client = "zksync or Curator"
	// ClientKazoo is kazoo.
	ClientKazoo Client = "kazoo"
	// ClientGoZookeeper is the Lock of go-zookeeper.
	ClientGoZookeeper Client = "go-zookeeper"
	// ClientRecipe is the lock recipe that comes with ZooKeeper.
	ClientRecipe Client = "ZooKeeper recipe"
)

// clientOf guesses the client library of a participant. It returns "" if any client may
// have created the znode.
func clientOf(kind Kind, c Contender) Client {
	name := znode.Base(c.Path)
	guid, protected := strings.CutPrefix(name, znode.ProtectedPrefix)
	switch {
	case kind == KindQueue:
		return ClientZksync // only ours show their consumers
	case kind == KindGroup || kind == KindElection && !protected:
		return ""
	case kind == KindDoubleBarrier:
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
	case c.Class == ContenderUnit && znode.Base(znode.Dir(c.Path)) != "leases":
		return ClientZksync // with LayoutKazoo, too
	}
	return byData(c.ID)
}

// byData tells Curator from this package by the data of a znode.
func byData(id string) Client {
	if _, err := netip.ParseAddr(id); err == nil || id == "" {
		return ClientCurator
	}
	if i := strings.LastIndexByte(id, ':'); i > 0 && isNumber([]byte(id[i+1:])) {
		return ClientZksync
	}
	return ClientZksyncOrCurator
}

func barrierClient(name string) Client {
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
func (i *inspector) clients(kind Kind) []Client {
	has := func(prefix string) bool {
		return slices.ContainsFunc(i.names, func(name string) bool { return strings.HasPrefix(name, prefix) })
	}
	switch {
	case kind != KindQueue:
	case has(ownQueuePrefix):
		return []Client{ClientZksync}
	case has(kazooQueuePrefix) || slices.Contains(i.names, kazooTaken):
		return []Client{ClientKazoo}
	case has(curatorQueuePrefix):
		return []Client{ClientCurator}
	}
	return nil
}
