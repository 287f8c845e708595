package prometheus

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/go-zksync/toolkit/session"
)

// An Option changes a default of New.
type Option func(*config)

type config struct {
	label   func(path string) string
	buckets []float64
}

// WithPathLabel sets the label path of holds and queues. The value of the label is
// label(path). Keep the number of different values small, because each value creates its
// own series.
func WithPathLabel(label func(path string) string) Option {
	return func(c *config) { c.label = label }
}

// WithBuckets sets the buckets of all histograms, in seconds. By default the buckets
// double from 1 ms to about 2 minutes.
func WithBuckets(buckets ...float64) Option {
	return func(c *config) { c.buckets = buckets }
}

type metrics struct {
	config
	state     *prometheus.GaugeVec
	lost      prometheus.Counter
	requests  *prometheus.HistogramVec
	own       *prometheus.CounterVec
	waits     *prometheus.HistogramVec
	holds     *prometheus.GaugeVec
	held      *prometheus.HistogramVec
	holdsLost *prometheus.CounterVec
	delivered *prometheus.CounterVec
	length    *prometheus.GaugeVec
}

// states are the values of the label state.
var states = []session.State{session.Connecting, session.Connected, session.Suspended, session.Lost, session.Closed}

// New registers the metrics with registerer and returns the observer that fills them. New
// returns an error if registerer refuses a metric. Several Managers of one ensemble may
// share an observer: zksync_state then has the state of the Manager that changed last.
func New(registerer prometheus.Registerer, opts ...Option) (session.Observer, error) {
	if registerer == nil {
		return session.Observer{}, errors.New("prometheus: the registerer is nil")
	}
	c := config{buckets: prometheus.ExponentialBuckets(0.001, 2, 18)}
	for _, opt := range opts {
		opt(&c)
	}
	if c.label == nil {
		c.label = func(string) string { return "" }
	}
	histogram := func(name, help string, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "zksync", Name: name, Help: help, Buckets: c.buckets}, labels)
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "zksync", Name: name, Help: help}, labels)
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "zksync", Name: name, Help: help}, labels)
	}
	m := &metrics{
		config:    c,
		state:     gauge("state", "1 for the present state of the Manager, 0 for others.", "state"),
		lost:      prometheus.NewCounter(prometheus.CounterOpts{Namespace: "zksync", Name: "sessions_lost_total", Help: "Sessions that were lost."}),
		requests:  histogram("request_duration_seconds", "Requests of callers, until the answer or the end of the connection.", "op", "class"),
		own:       counter("own_requests_total", "Requests that prove the session alive or clean up.", "op", "class"),
		waits:     histogram("wait_duration_seconds", "Calls that had to wait for others.", "op", "outcome"),
		holds:     gauge("holds", "Znodes that are held.", "path"),
		held:      histogram("hold_duration_seconds", "Holds that have ended.", "path"),
		holdsLost: counter("holds_lost_total", "Holds that were lost before their release.", "path"),
		delivered: counter("queue_delivered_total", "Messages that were delivered.", "path"),
		length:    gauge("queue_length", "Messages in the queue, as Len has counted them.", "path"),
	}
	for _, c := range []prometheus.Collector{m.state, m.lost, m.requests, m.own, m.waits, m.holds, m.held, m.holdsLost, m.delivered, m.length} {
		if err := registerer.Register(c); err != nil {
			return session.Observer{}, err
		}
	}
	m.setState(session.Connecting)
	return m.observer(), nil
}

func (m *metrics) setState(now session.State) {
	for _, s := range states {
		value := 0.0
		if s == now {
			value = 1
		}
		m.state.WithLabelValues(s.String()).Set(value)
	}
}

func (m *metrics) observer() session.Observer {
	return session.Observer{
		StateChanged: func(e session.StateChange) {
			m.setState(e.To)
			if e.To == session.Lost {
				m.lost.Inc()
			}
		},
		RequestDone: func(e session.RequestDone) {
			if e.Own {
				m.own.WithLabelValues(e.Op, e.Class.String()).Inc()
				return
			}
			m.requests.WithLabelValues(e.Op, e.Class.String()).Observe(e.Latency.Seconds())
		},
		WaitEnded: func(e session.WaitEnded) {
			outcome := "done"
			if e.Cancelled {
				outcome = "cancelled"
			}
			m.waits.WithLabelValues(e.Op, outcome).Observe(e.Duration.Seconds())
		},
		HoldStarted: func(e session.HoldStarted) { m.holds.WithLabelValues(m.label(e.Path)).Inc() },
		HoldEnded: func(e session.HoldEnded) {
			path := m.label(e.Path)
			m.holds.WithLabelValues(path).Dec()
			m.held.WithLabelValues(path).Observe(e.Duration.Seconds())
			if e.Lost != nil {
				m.holdsLost.WithLabelValues(path).Inc()
			}
		},
		Delivered:   func(e session.Delivered) { m.delivered.WithLabelValues(m.label(e.Path)).Inc() },
		QueueLength: func(e session.QueueLength) { m.length.WithLabelValues(m.label(e.Path)).Set(float64(e.Length)) },
	}
}
