package otel

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/go-zksync/toolkit/session"
)

// An Option changes a default of New.
type Option func(*metrics)

// WithPathAttribute sets the attribute path of holds and queues. The value of the
// attribute is label(path). Keep the number of different values small, because each value
// creates its own series.
func WithPathAttribute(label func(path string) string) Option {
	return func(m *metrics) { m.label = label }
}

type metrics struct {
	label     func(path string) string
	connected metric.Int64UpDownCounter
	lost      metric.Int64Counter
	requests  metric.Float64Histogram
	waits     metric.Float64Histogram
	holds     metric.Int64UpDownCounter
	held      metric.Float64Histogram
	delivered metric.Int64Counter
	length    metric.Int64Gauge
}

// New creates the instruments and returns the observer that fills them. New returns an
// error if the meter refuses an instrument. Several Managers may share an observer.
func New(meter metric.Meter, opts ...Option) (session.Observer, error) {
	if meter == nil {
		return session.Observer{}, errors.New("otel: the meter is nil")
	}
	m := &metrics{}
	for _, opt := range opts {
		opt(m)
	}
	var errs [8]error
	seconds := metric.WithUnit("s")
	m.connected, errs[0] = meter.Int64UpDownCounter("zksync.connected", metric.WithDescription("Managers that have a connection."))
	m.lost, errs[1] = meter.Int64Counter("zksync.sessions.lost", metric.WithDescription("Sessions that were lost."))
	m.requests, errs[2] = meter.Float64Histogram("zksync.request.duration", seconds, metric.WithDescription("Requests, until the answer or the end of the connection."))
	m.waits, errs[3] = meter.Float64Histogram("zksync.wait.duration", seconds, metric.WithDescription("Calls that had to wait for others."))
	m.holds, errs[4] = meter.Int64UpDownCounter("zksync.holds", metric.WithDescription("Znodes that are held."))
	m.held, errs[5] = meter.Float64Histogram("zksync.hold.duration", seconds, metric.WithDescription("Holds that have ended."))
	m.delivered, errs[6] = meter.Int64Counter("zksync.queue.delivered", metric.WithDescription("Messages that were delivered."))
	m.length, errs[7] = meter.Int64Gauge("zksync.queue.length", metric.WithDescription("Messages in the queue, as Len has counted them."))
	return m.observer(), errors.Join(errs[:]...)
}

// path returns the attributes of a hold or a queue: more, and the attribute path if
// WithPathAttribute is set.
func (m *metrics) path(path string, more ...attribute.KeyValue) metric.MeasurementOption {
	if m.label != nil {
		more = append(more, attribute.String("path", m.label(path)))
	}
	return metric.WithAttributes(more...)
}

func (m *metrics) observer() session.Observer {
	ctx := context.Background()
	return session.Observer{
		StateChanged: func(e session.StateChange) {
			switch {
			case e.To == session.Connected:
				m.connected.Add(ctx, 1)
			case e.From == session.Connected:
				m.connected.Add(ctx, -1)
			}
			if e.To == session.Lost {
				m.lost.Add(ctx, 1)
			}
		},
		RequestDone: func(e session.RequestDone) {
			m.requests.Record(ctx, e.Latency.Seconds(), metric.WithAttributes(
				attribute.String("op", e.Op), attribute.String("class", e.Class.String()), attribute.Bool("own", e.Own)))
		},
		WaitEnded: func(e session.WaitEnded) {
			outcome := "done"
			if e.Cancelled {
				outcome = "cancelled"
			}
			m.waits.Record(ctx, e.Duration.Seconds(), metric.WithAttributes(attribute.String("op", e.Op), attribute.String("outcome", outcome)))
		},
		HoldStarted: func(e session.HoldStarted) { m.holds.Add(ctx, 1, m.path(e.Path)) },
		HoldEnded: func(e session.HoldEnded) {
			m.holds.Add(ctx, -1, m.path(e.Path))
			m.held.Record(ctx, e.Duration.Seconds(), m.path(e.Path, attribute.Bool("lost", e.Lost != nil)))
		},
		Delivered:   func(e session.Delivered) { m.delivered.Add(ctx, 1, m.path(e.Path)) },
		QueueLength: func(e session.QueueLength) { m.length.Record(ctx, int64(e.Length), m.path(e.Path)) },
	}
}
