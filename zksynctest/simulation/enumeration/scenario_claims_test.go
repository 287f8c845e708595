package enumeration_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest/simulation/network"
)

var claimScenarios = slices.Concat(competingScenariosOf(queueKinds...), claimScenariosOf(queueKinds[0], queueKinds[2]), loneScenarios)

// loneScenarios has the kinds of queues with partitions, and a consumer that may have one message at a time. It keeps the
// first one for long, while nobody receives a message that comes meanwhile under the same name.
var loneScenarios = []*scenario{
	loneScenario(queueKinds[1], func(m *session.Manager) anyQueue {
		return zksync.NewPriorityQueue(m, queuePath, zksync.WithPrefetch(1))
	}),
	loneScenario(queueKinds[2], func(m *session.Manager) anyQueue {
		return zksync.NewDelayQueue(m, queuePath, zksync.WithPrefetch(1))
	}),
}

func loneScenario(kind queueKind, open func(m *session.Manager) anyQueue) *scenario {
	kind.open = func(_ *stage, m *session.Manager) anyQueue { return open(m) }
	return &scenario{name: kind.name + "-lone", clients: 2, run: func(s *stage) {
		mb := withQueue(s, kind)
		a, b := s.clients[0], s.clients[1]
		s.together(
			func() { mb.produce(a, "1", "2") },
			func() { b.sleep(soon); mb.settleAll(b, keep) },
		)
	}}
}

// competingScenariosOf returns a scenario of each kind of queue in which consumers compete for
// messages that wait.
func competingScenariosOf(kinds ...queueKind) (all []*scenario) {
	for _, kind := range kinds {
		// A puts messages, and then B and C receive them at the same time. Each gives its first message
		// back.
		all = append(all, &scenario{name: kind.name + "-two", clients: 3, run: func(s *stage) {
			mb := withQueue(s, kind)
			a, b, c := s.clients[0], s.clients[1], s.clients[2]
			mb.produceAtOnce(a, "1", "2", "3", "4")
			s.together(
				func() { mb.settleAll(b, nack) },
				func() { mb.settleAll(c, nack) },
			)
		}})
	}
	return all
}

// claimScenariosOf returns the scenarios of each kind of queue in which messages stay claimed, or
// are passed over.
func claimScenariosOf(kinds ...queueKind) (all []*scenario) {
	for _, kind := range kinds {
		all = append(all,
			// A puts messages. B keeps its first message for long, and C receives the others.
			&scenario{name: kind.name + "-keep", clients: 3, run: func(s *stage) {
				mb := withQueue(s, kind)
				a, b, c := s.clients[0], s.clients[1], s.clients[2]
				s.together(
					func() { mb.put(a, "1"); mb.put(a, "2"); a.sleep(timeout); mb.produce(a, "3") },
					func() { b.sleep(soon); mb.settleAll(b, keep) },
					func() { c.sleep(2 * soon); mb.settleAll(c, ack) },
				)
			}},
			// A puts messages, and B takes and receives them by one value at the same time.
			&scenario{name: kind.name + "-both", clients: 2, run: func(s *stage) {
				mb := withQueue(s, kind)
				a, b := s.clients[0], s.clients[1]
				s.together(
					func() { mb.put(a, "1"); mb.put(a, "2"); mb.produce(a, "3", "4") },
					func() { b.sleep(soon); mb.takeAll(b) },
					func() { b.sleep(soon); mb.chanAll(b) },
				)
			}},
			// Nobody may read the second message, and B and C receive the others.
			&scenario{name: kind.name + "-unreadable", clients: 3, run: func(s *stage) {
				mb := withQueue(s, kind)
				a, b, c := s.clients[0], s.clients[1], s.clients[2]
				mb.putSecret(a)
				s.together(
					func() { mb.put(a, "2"); a.sleep(while); mb.produce(a, "3") },
					func() { b.sleep(soon); mb.settleAll(b, nack) },
					func() { c.sleep(2 * soon); mb.settleAll(c, nack) },
				)
				s.deleteSecrets(queuePath)
			}},
		)
	}
	return all
}

// keep acknowledges a message a session timeout after its receipt.
var keep = settlement{ack.verb, ack.do, timeout}

// produceAtOnce puts messages without pauses, and counts as a producer until all of them are put.
func (mb *mailbox) produceAtOnce(c *client, ids ...string) {
	for _, id := range ids {
		mb.put(c, id)
	}
	mb.producers.left.Add(-1)
}

// produceTogether puts n messages with one call.
func (mb *mailbox) produceTogether(c *client, n int) {
	var all [][]byte
	var put []*message
	mb.mu.Lock()
	for i := range n {
		m := &message{}
		all, put = append(all, mb.payload(fmt.Sprint(i+1))), append(put, m)
		mb.messages[fmt.Sprint(i+1)] = m
	}
	mb.mu.Unlock()
	err := c.do("PutAll", func(ctx context.Context) error {
		if q, ok := mb.values.of(c).(*zksync.PriorityQueue); ok {
			return q.PutAll(ctx, 7, all...)
		}
		return mb.values.of(c).(*zksync.Queue).PutAll(ctx, all...)
	}, orUnknown)
	mb.mu.Lock()
	for _, m := range put {
		m.sure = err == nil // otherwise some of the messages may be in the queue
	}
	mb.mu.Unlock()
	mb.producers.left.Add(-1)
}

// putSecret puts a message, and behind it a message that nobody may read.
func (mb *mailbox) putSecret(c *client) {
	const digits = 10 // of a sequence number
	mb.put(c, "1")
	first := mb.firstMessage()
	if first == "" {
		return
	}
	_ = c.do("Create", func(ctx context.Context) error {
		by, err := c.manager().Session(ctx)
		if err == nil {
			_, err = by.Create(ctx, first[:len(first)-digits], []byte(secret), zk.FlagSequence, zk.DigestACL(zk.PermAll, "somebody", "else")...)
		}
		return err
	}, orLost, orConnectionLost, func(s *stage, err error) bool { return s.harm()&wipes != 0 && errors.Is(err, zk.ErrNoNode) })
}

const secret = "secret"

// deleteSecrets deletes the messages of putSecret below a directory.
func (s *stage) deleteSecrets(dir string) {
	names, _ := s.server.Children(dir)
	for _, name := range names {
		path := dir + "/" + name
		if data, _ := s.server.Get(path); string(data) == secret {
			s.operator(func() error { return s.deleteIfThere(path) })
		} else {
			s.deleteSecrets(path)
		}
	}
}

// orderZnode returns the path of the order znode, or nothing.
func (s *stage) orderZnode() string {
	dir := s.beside("zksync-claims")
	names, _ := s.server.Children(dir)
	i := slices.IndexFunc(names, func(name string) bool { return strings.HasPrefix(name, "order-") })
	if i < 0 {
		return ""
	}
	return dir + "/" + names[i]
}

// changeOrder lets another client change the order znode.
func changeOrder(change func(s *stage, path string, data []byte) error) func(*stage, network.Frame) {
	return func(s *stage, _ network.Frame) {
		path := s.orderZnode()
		if path == "" || s.server.Leader() == 0 {
			s.void("no order znode, or no leader")
			return
		}
		data, _ := s.server.Get(path)
		s.say("another client changes %s", path)
		if err := change(s, path, data); err != nil {
			s.fail("change the order znode: %v", fmt.Errorf("%s: %w", path, err))
		}
	}
}

func deleteOrder(s *stage, path string, _ []byte) error { return s.server.Delete(path) }

func emptyOrder(s *stage, path string, _ []byte) error { return s.server.Set(path, nil) }

// remakeOrder deletes the order znode and creates it again under its name, with its data.
func remakeOrder(s *stage, path string, data []byte) error {
	if err := s.server.Delete(path); err != nil {
		return err
	}
	return s.server.Create(path, data)
}
