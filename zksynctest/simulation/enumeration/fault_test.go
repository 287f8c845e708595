package enumeration_test

import (
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest/simulation/network"
	"github.com/go-zksync/toolkit/zksynctest/simulation/surroundings"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// Times of every case. The tick of half the session timeout is the longest tick that a server
// accepts: followers report touches once per half tick.
const (
	timeout = 6 * time.Second // the session timeout T
	tick    = timeout / 2
)

// A harm is an effect that a fault may have on the client that it strikes, beyond a
// delay without any loss.
type harm uint

const (
	silences   harm = 1 << iota // nothing arrives on one connection for a while
	loses                       // the session may be lost
	forces                      // the session ends by force: only tokens protect a hold
	suspends                    // the process does not run for a while
	cancels                     // the contexts of the client's calls end
	closes                      // the Manager is closed
	refuses                     // the servers refuse writes for good
	removes                     // another client deletes znodes of ours
	wipes                       // messages may disappear
	steals                      // another client takes a message
	unorders                    // the claims of a queue lose their order, and their messages the number of their deliveries
	forbids                     // a server refuses a request for lack of a permission
	errs                        // a server answers with an internal error: the request may have been carried out
	postpones                   // a transaction that proves the session alive may come later
	misreads                    // a server answers reads with internal errors
	downgrades                  // the servers lack newer operations for a while
	touches                     // another client writes the data of znodes of ours again
	intrudes                    // another client creates znodes in the directories
	stalls                      // the servers carry out no request, or tell no outcome, for a while
)

// A fault is one thing that can go wrong at one frame.
type fault struct {
	name  string
	fits  func(f network.Frame) bool // nil if the fault fits every frame
	do    network.Effect
	lasts time.Duration
	then  func(s *stage, f network.Frame) // called before the frame is passed on, if not nil
	harm  harm
	leads bool                 // the client must be connected to the leader
	alone bool                 // not tried as a second fault
	in    func(*scenario) bool // nil if the fault is tried in every scenario
}

func faultByName(name string) *fault {
	i := slices.IndexFunc(faults, func(f *fault) bool { return f.name == name })
	if i < 0 {
		return nil
	}
	return faults[i]
}

// faults lists all faults in the order in which they are tried.
var faults = []*fault{
	{name: "break-before", do: network.Reset},
	{name: "break-after", do: network.ResetAfter},
	{name: "lose", fits: answers, do: network.Lose, lasts: timeout / 2, harm: silences},
	{name: "swallow", do: network.Swallow, lasts: 2 * timeout, harm: silences},
	{name: "delay-quarter", do: network.Stall, lasts: timeout/4 + timeout/20, harm: silences},
	{name: "delay-T", do: network.Stall, lasts: timeout + timeout/20, harm: silences},
	{name: "delay-2T", do: network.Stall, lasts: 2*timeout + timeout/20, harm: silences},
	{name: "throttle", fits: throttlable, do: network.Pass, then: (*stage).throttle, harm: postpones},
	{name: "error-before", fits: throttlable, do: network.Pass, then: internalError(zkserver.BeforeCommit), harm: errs | postpones},
	{name: "error-after", fits: writes, do: network.Pass, then: internalError(zkserver.AfterCommit), harm: errs | postpones},
	{name: "throttle-all", fits: throttlable, do: network.Pass, then: trouble(timeout/4, zkserver.BeforeCommit, zkserver.Throttle, surroundings.Throttlable), harm: postpones | stalls},
	{name: "errors-before", fits: throttlable, do: network.Pass, then: trouble(timeout/4, zkserver.BeforeCommit, zkserver.Error(zkserver.ErrSystem), surroundings.Throttlable), harm: errs | postpones | stalls},
	{name: "errors-after", fits: writes, do: network.Pass, then: trouble(timeout/4, zkserver.AfterCommit, zkserver.Error(zkserver.ErrSystem), surroundings.Writes), harm: errs | postpones | stalls},
	{name: "errors-of-reads", fits: reads, do: network.Pass, then: trouble(timeout/4, zkserver.BeforeCommit, zkserver.Error(zkserver.ErrSystem), surroundings.Reads), harm: stalls | misreads},
	{name: "forbid", fits: forbiddable, do: network.Pass, then: (*stage).forbid, harm: forbids, alone: true, in: (*scenario).endsWithoutPermissions},
	{name: "forbid-reads", fits: reads, do: network.Pass, then: trouble(timeout/4, zkserver.BeforeCommit, zkserver.Error(zkserver.ErrNoAuth), shows), harm: forbids, in: (*scenario).endsWithoutPermissions},
	{name: "withhold-create", fits: goesUp, do: network.Pass, then: withhold(zk.PermCreate), harm: forbids},
	{name: "withhold-write", fits: goesUp, do: network.Pass, then: withhold(zk.PermWrite), harm: forbids},
	{name: "withhold-delete", fits: goesUp, do: network.Pass, then: withhold(zk.PermDelete), harm: forbids},
	{name: "downgrade", fits: newer, do: network.Pass, then: trouble(2*timeout, zkserver.BeforeCommit, zkserver.Error(zkserver.ErrUnimplemented), isNew35), harm: downgrades},
	{name: "downgrade-break", fits: newer, do: network.Pass, then: trouble(timeout/2, zkserver.BeforeCommit, zkserver.Disconnect, isNew35), harm: downgrades},
	{name: "touch", fits: goesUp, do: network.Pass, then: (*stage).touch, harm: touches},
	{name: "intrude", fits: goesUp, do: network.Pass, then: (*stage).intrude, harm: intrudes},
	{name: "quota", fits: goesUp, do: network.Pass, then: (*stage).quota, harm: refuses},
	{name: "expire", do: network.Pass, then: (*stage).expire, harm: loses | forces},
	{name: "remove", fits: goesUp, do: network.Pass, then: (*stage).remove, harm: removes},
	{name: "wipe", fits: goesUp, do: network.Pass, then: (*stage).wipe, harm: removes | wipes},
	{name: "wipe-claims", fits: goesUp, do: network.Pass, then: (*stage).wipeClaims, harm: removes, in: (*scenario).hasQueue},
	{name: "steal", fits: goesUp, do: network.Pass, then: (*stage).steal, harm: steals, in: (*scenario).hasQueue},
	{name: "barge", fits: goesUp, do: network.Pass, then: (*stage).barge, in: (*scenario).hasFixedUnits},
	{name: "remake", fits: goesUp, do: network.Pass, then: (*stage).remake, harm: removes | wipes, in: (*scenario).hasQueue},
	{name: "delete-order", fits: goesUp, do: network.Pass, then: changeOrder(deleteOrder), harm: unorders, in: (*scenario).hasQueue},
	{name: "empty-order", fits: goesUp, do: network.Pass, then: changeOrder(emptyOrder), harm: unorders, in: (*scenario).hasQueue},
	{name: "remake-order", fits: goesUp, do: network.Pass, then: changeOrder(remakeOrder), harm: unorders, in: (*scenario).hasQueue},
	{name: "lag", do: network.ResetAfter, then: (*stage).lag},
	{name: "cut", do: network.Pass, then: (*stage).cut, harm: loses},
	{name: "strand", do: network.Pass, then: (*stage).strand, harm: loses},
	{name: "depose", do: network.Pass, then: (*stage).depose, harm: loses, leads: true},
	{name: "depose-strand", fits: goesUp, do: network.Pass, then: (*stage).deposeStrand, harm: loses, leads: true},
	{name: "pause-quarter", fits: goesUp, do: network.Pass, then: pauseLeader(timeout/4+timeout/20, zkserver.RequestsFirst), harm: loses},
	{name: "pause-T", fits: goesUp, do: network.Pass, then: pauseLeader(timeout+timeout/20, zkserver.RequestsFirst), harm: loses},
	{name: "pause-T-sweep", fits: goesUp, do: network.Pass, then: pauseLeader(timeout+timeout/20, zkserver.RequestsDuringSweep), harm: loses},
	{name: "pause-2T", fits: goesUp, do: network.Pass, then: pauseLeader(2*timeout+timeout/20, zkserver.SweepFirst), harm: loses},
	{name: "shorten", fits: goesUp, do: network.ResetAfter, then: (*stage).shorten, harm: loses},
	{name: "outage", do: network.Pass, then: (*stage).outage, harm: loses},
	{name: "suspend-half", do: network.Stall, lasts: timeout / 2, then: suspend(timeout / 2), harm: loses | suspends},
	{name: "suspend-2T", do: network.Stall, lasts: 2 * timeout, then: suspend(2 * timeout), harm: loses | suspends},
	{name: "cancel-lost", do: network.Pass, then: cancelWith(zksync.ErrLost), harm: cancels},
	{name: "cancel-nonode", do: network.Pass, then: cancelWith(zk.ErrNoNode), harm: cancels},
	{name: "cancel-taken", do: network.Pass, then: cancelWith(zksync.ErrIDTaken), harm: cancels},
	{name: "close", do: network.Pass, then: (*stage).close, harm: closes},
	{name: "kill", fits: goesUp, do: network.Pass, then: (*stage).kill, harm: closes | loses},
}
