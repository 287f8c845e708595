// Package otel provides an observer that records metrics of a session.Manager, and of the
// primitives that use the Manager, with OpenTelemetry.
//
//	observer, err := otel.New(provider.Meter("zookeeper"))
//	if err != nil { ... }
//	m, err := session.Connect(ctx, servers, session.WithObserver(observer))
//
// The instruments are:
//
//	zksync.connected                 up-down counter: Managers that have a connection
//	zksync.sessions.lost             counter: sessions that were lost
//	zksync.request.duration          histogram in s, by op, class and own
//	zksync.wait.duration             histogram in s, by op and outcome (done or cancelled)
//	zksync.holds                     up-down counter: znodes that are held, by path
//	zksync.hold.duration             histogram in s, by path and lost (true or false)
//	zksync.queue.delivered           counter: messages that were delivered, by path
//	zksync.queue.length              gauge: messages in a queue, as Len has counted them, by path
//
// The attribute path is absent unless WithPathAttribute sets it, because a program with
// one lock per order would otherwise create one series per order.
package otel
