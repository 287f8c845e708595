// Package prometheus provides an observer that records metrics of a session.Manager, and of the primitives that use
// the Manager, with the Prometheus client library.
//
//	observer, err := prometheus.New(registry)
//	if err != nil { ... }
//	m, err := session.Connect(ctx, servers, session.WithObserver(observer))
//
// The metrics are:
//
//	zksync_state{state}                          1 for the present state, 0 for others
//	zksync_sessions_lost_total                   sessions that were lost
//	zksync_request_duration_seconds{op,class}    histogram of requests of callers
//	zksync_own_requests_total{op,class}          requests that prove sessions alive
//	zksync_wait_duration_seconds{op,outcome}     histogram of calls that waited; outcome is done or cancelled
//	zksync_holds{path}                           znodes that are held
//	zksync_hold_duration_seconds{path}           histogram of holds that ended
//	zksync_holds_lost_total{path}                holds that were lost
//	zksync_queue_delivered_total{path}           messages that were delivered
//	zksync_queue_length{path}                    messages in a queue, as Len has counted them
//
// The label path is empty unless WithPathLabel sets it, because a program with one lock per order would otherwise
// create one series per order. The directory of this package contains a dashboard for Grafana, dashboard.json, and
// alerts, alerts.yml.
package prometheus
