package zksync

import (
	"context"
	"slices"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/inspect"
)

// A Kind says which primitive uses a path.
type Kind uint8

const (
	// KindDirectory is a znode with children that no primitive has created.
	KindDirectory = Kind(inspect.Directory)
	// KindEmpty is a directory without children: its primitive cannot be known at present.
	KindEmpty = Kind(inspect.Empty)
	// KindLock is a Mutex, or an Election by LeaderSelector or kazoo, which look alike.
	KindLock = Kind(inspect.Lock)
	// KindRWLock is an RWMutex.
	KindRWLock = Kind(inspect.RWLock)
	// KindSemaphore is a Semaphore.
	KindSemaphore = Kind(inspect.Semaphore)
	// KindElection is an Election.
	KindElection = Kind(inspect.Election)
	// KindQueue is a Queue, a PriorityQueue or a DelayQueue.
	KindQueue = Kind(inspect.Queue)
	// KindBarrier is a Barrier that is set: a persistent znode that never had children.
	KindBarrier = Kind(inspect.Barrier)
	// KindDoubleBarrier is a DoubleBarrier.
	KindDoubleBarrier = Kind(inspect.DoubleBarrier)
	// KindGroup is a Group: a directory of ephemerals.
	KindGroup = Kind(inspect.Group)
)

var kindNames = []string{"directory", "empty", "lock", "rwlock", "semaphore", "election", "queue", "barrier", "double barrier", "group"}

func (k Kind) String() string { return nameOf(kindNames, int(k), "Kind") }

// MarshalText returns String.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// A Client is a client library, as far as the name and the data of a znode tell.
type Client string

const (
	// ClientZksync is this package.
	ClientZksync Client = inspect.ClientZksync
	// ClientCurator is Apache Curator.
	ClientCurator Client = inspect.ClientCurator
	// ClientZksyncOrCurator is one of both, whose znodes have the same names.
	ClientZksyncOrCurator Client = inspect.ClientZksyncOrCurator
	// ClientKazoo is kazoo.
	ClientKazoo Client = inspect.ClientKazoo
	// ClientGoZookeeper is the Lock of go-zookeeper.
	ClientGoZookeeper Client = inspect.ClientGoZookeeper
	// ClientRecipe is the lock recipe that comes with ZooKeeper.
	ClientRecipe Client = inspect.ClientRecipe
)

// A Participant is a Contender with the client library that has probably created its
// znode.
type Participant struct {
	Contender
	Client Client
}

// An Inspection is the result of Inspect at a path.
type Inspection struct {
	Path string
	Kind Kind
	// Clients are the client libraries that use the path, as far as the znodes tell.
	Clients []Client
	// Participants are the contenders in order, with the holders first; the members of
	// a group; the participants of a double barrier, which hold from the time at which it
	// opens; the consumers of a queue.
	Participants []Participant
	// Depth is the number of participants that wait, or of messages in a queue.
	Depth int
}

// Holders returns the participants that hold.
func (i *Inspection) Holders() []Participant {
	return slices.DeleteFunc(slices.Clone(i.Participants), func(p Participant) bool { return !p.Holds })
}

// Inspect reports which primitive uses a path, and its participants, as of the time of
// the call. The primitive may be one of this package, of Curator, of kazoo or of
// go-zookeeper. Inspect goes by the names and the data of the znodes, so it can only
// guess. It reads every participant. If contenders of several kinds use the path, which they should not,
// it lists those of one kind.
//
// Inspect fails with zk.ErrNoNode if there is no znode at path. It reads like
// Mutex.Contenders.
func Inspect(ctx context.Context, m *session.Manager, path string) (*Inspection, error) {
	if err := session.CheckPath(path); err != nil {
		return nil, opError("inspect", path, err)
	}
	found, err := inspect.Path(ctx, m, path)
	if err != nil {
		return nil, opError("inspect", path, err)
	}
	i := &Inspection{Path: path, Kind: Kind(found.Kind), Depth: found.Depth}
	for _, c := range found.Clients {
		i.Clients = append(i.Clients, Client(c))
	}
	for _, p := range found.Participants {
		i.Participants = append(i.Participants, Participant{contenderOf(p.Listed), Client(p.Client)})
	}
	return i, nil
}
