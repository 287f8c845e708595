package inspect

import (
	"slices"
	"strings"

	"github.com/go-zksync/toolkit/zksync/internal/line"
	"github.com/go-zksync/toolkit/zksync/internal/rendezvous"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A Kind is a kind of primitive, or of a path that no primitive uses. See the constants
// of zksync.
type Kind uint8

const (
	Directory Kind = iota
	Empty
	Lock
	RWLock
	Semaphore
	Election
	Queue
	Barrier
	DoubleBarrier
	Group
)

// maxLooked is how many children are read to find an ephemeral among them.
const maxLooked = 64

// kind decides which primitive uses the path. The names of the children decide; a
// single participant is enough, since the directory of a primitive is its own.
func (i *inspector) kind() (Kind, error) {
	if znode.IsSession(i.stat.EphemeralOwner) {
		return Election, nil // an ephemeral has no children
	}
	has := func(is func(name string) bool) bool { return slices.ContainsFunc(i.names, is) }
	switch {
	case slices.Contains(i.names, unitsDirectory) && slices.Contains(i.names, "locks"):
		return Semaphore, nil
	case has(isQueuePart):
		return Queue, nil
	case has(line.LatchRule.Has):
		return Election, nil
	case has(isSharedName):
		return RWLock, nil
	case has(line.LockRule.Has):
		return Lock, nil
	case has(line.LeaseRule.Has) && znode.Base(i.path) != unitsDirectory:
		// LayoutKazoo, whose path may have existed without the size as data.
		return Semaphore, nil
	case isNumber(i.data):
		// kazoo keeps the size of a semaphore as data, and the line beside the path.
		ok, _, err := i.s.Exists(i.ctx, i.path+"-"+line.Kazoo.Lock)
		if ok || err != nil {
			return Semaphore, err
		}
	}
	switch {
	case slices.Contains(i.names, rendezvous.ReadyName) || has(rendezvous.IsParticipant):
		return DoubleBarrier, nil
	case slices.Contains(i.names, unitsDirectory):
		// The server has removed the directory of a line that was empty for a while.
		if semaphore, err := i.hasUnits(); semaphore || err != nil {
			return Semaphore, err
		}
		return i.directory()
	case len(i.names) > 0:
		return i.directory()
	case i.stat.Cversion == 0 && i.stat.EphemeralOwner == 0:
		return Barrier, nil
	}
	return Empty, nil
}

// unitsDirectory is the name of the directory of a semaphore's units.
const unitsDirectory = "leases"

// hasUnits reports whether units of a semaphore are held below the path.
func (i *inspector) hasUnits() (bool, error) {
	names, _, err := znode.Children(i.ctx, i.s, znode.Join(i.path, unitsDirectory))
	return slices.ContainsFunc(names, line.LeaseRule.Has), err
}

// directory tells a group from a directory of something else.
func (i *inspector) directory() (Kind, error) {
	found, err := znode.ReadAll(i.ctx, i.s, i.path, i.names[:min(len(i.names), maxLooked)])
	if slices.ContainsFunc(found, func(z znode.Node) bool { return znode.IsSession(z.Stat.EphemeralOwner) }) {
		return Group, nil
	}
	return Directory, err
}

// isSharedName recognises contenders that only a lock of readers and writers has.
// kazoo's writers look like the contenders of its Lock.
func isSharedName(name string) bool {
	c, _, ok := line.SharedRule.Parse(name)
	return ok && (c == line.Reader || strings.Contains(name, line.Curator.Writer))
}

func isNumber(data []byte) bool {
	return len(data) > 0 && strings.Trim(string(data), "0123456789") == ""
}

// Names in the directory of a queue. Inspect has its own list: it must recognise the
// queues of other versions and of other clients, too.
const (
	ownQueuePrefix     = "zksync-"      // of the directories that our queues use
	recipeQueuePrefix  = "qn-"          // of messages of ours, of the recipe, and of Curator's SimpleDistributedQueue
	curatorQueuePrefix = "queue-"       // of messages of Curator's DistributedQueue
	kazooQueuePrefix   = "entry-"       // of messages of kazoo
	kazooEntries       = "entries"      // the messages of kazoo's LockingQueue
	kazooTaken         = "taken"        // the claims of kazoo's LockingQueue
	laterDirectory     = "zksync-later" // messages of Retry
	claimsDirectory    = "zksync-claims"
	ledgerPrefix       = "ledger-" // of the claims of a consumer
)

// isQueuePart recognises the children that only the directory of a queue has.
func isQueuePart(name string) bool {
	return strings.HasPrefix(name, ownQueuePrefix) || isMessage(name) || name == kazooTaken
}

func isMessage(name string) bool {
	for _, prefix := range []string{recipeQueuePrefix, curatorQueuePrefix, kazooQueuePrefix} {
		if rest, ok := strings.CutPrefix(name, prefix); ok && strings.Trim(rest, "-0123456789") == "" && len(rest) >= 10 {
			return true
		}
	}
	return false
}

// isPartition recognises the directories of messages in the directory of a queue.
func isPartition(name string) bool {
	letter, digits, ok := strings.Cut(name, "-")
	return ok && (letter == "p" || letter == "t") && isNumber([]byte(digits)) || name == kazooEntries || name == laterDirectory
}

// chosen returns the names that is chooses.
func chosen(names []string, is func(name string) bool) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !is(name) })
}

// messages counts the messages of a queue.
func (i *inspector) messages() (int, error) {
	n := len(chosen(i.names, isMessage))
	found, err := znode.ReadAll(i.ctx, i.s, i.path, chosen(i.names, isPartition))
	for _, z := range found {
		n += int(z.Stat.NumChildren)
	}
	return n, err
}

// consumers returns the values of our queues that receive from Chan or Messages.
func (i *inspector) consumers() ([]line.Listed, error) {
	claims := znode.Join(i.path, claimsDirectory)
	names, _, err := znode.Children(i.ctx, i.s, claims)
	if err != nil {
		return nil, err
	}
	return i.members(claims, names, func(name string) bool { return strings.HasPrefix(name, ledgerPrefix) })
}
