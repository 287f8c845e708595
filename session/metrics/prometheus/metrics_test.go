package prometheus_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/session/metrics/prometheus"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// scrape returns the metrics as Prometheus reads them.
func scrape(registry *client.Registry) string {
	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

// Prometheus scrapes metrics of a program's locks, waits, losses and queues.
func TestMetrics(t *testing.T) {
	registry := client.NewPedanticRegistry()
	observer, err := prometheus.New(registry, prometheus.WithPathLabel(func(path string) string { return path }))
	if err != nil {
		t.Fatal(err)
	}
	srv := zksynctest.Start(t)
	m := srv.Connect(t, session.WithObserver(observer))
	mu := zksync.NewMutex(m, "/l")
	if err := mu.Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if zksync.NewMutex(m, "/l").Lock(ctx) == nil {
		t.Error("locked twice")
	}
	q := zksync.NewQueue(m, "/q")
	for range 3 {
		if err := q.Put(t.Context(), []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := q.Len(t.Context()); n != 3 || err != nil {
		t.Fatal(n, err)
	}
	// Here: the consumer may list the queue again when it has removed messages.
	if line, got := `zksync_queue_length{path="/q"} 3`, scrape(registry); !strings.Contains(got, line) {
		t.Errorf("the metrics do not say %s: %s", line, got)
	}
	for range 3 {
		<-q.Chan()
	}
	q.Close()
	if err := mu.Unlock(); err != nil {
		t.Fatal(err)
	}
	if err := mu.Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	s, err := m.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	srv.ExpireSession(s.ID())
	<-s.Done()
	if _, err := m.Session(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := scrape(registry)
	for _, line := range []string{
		`zksync_state{state="Connected"} 1`,
		`zksync_state{state="Lost"} 0`,
		`zksync_sessions_lost_total 1`,
		`zksync_holds{path="/l"} 0`,
		`zksync_holds_lost_total{path="/l"} 1`,
		`zksync_hold_duration_seconds_count{path="/l"} 2`,
		`zksync_wait_duration_seconds_count{op="lock",outcome="cancelled"} 1`,
		`zksync_queue_delivered_total{path="/q"} 3`,
		`zksync_own_requests_total{`,
		`zksync_request_duration_seconds_count{class="OK",op="multi"}`,
	} {
		if !strings.Contains(got, line) {
			t.Errorf("the metrics do not say %s", line)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
	if _, err := prometheus.New(registry); err == nil {
		t.Error("registered twice")
	}
	if _, err := prometheus.New(nil); err == nil {
		t.Error("no registerer, and no error")
	}
}

// The dashboard and the alerts name only metrics that exist.
func TestDashboardAndAlertsNameMetricsThatExist(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"dashboard.json", "alerts.yml"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".json") && !json.Valid(text) {
			t.Errorf("%s is not JSON", name)
		}
		used := regexp.MustCompile(`zksync_[a-z_]+`).FindAllString(string(text), -1)
		if len(used) < 5 {
			t.Errorf("%s names %d metrics", name, len(used))
		}
		for _, metric := range used {
			base := metric
			for _, suffix := range []string{"_bucket", "_count", "_sum"} {
				base = strings.TrimSuffix(base, suffix)
			}
			if !strings.Contains(string(doc), base+"{") && !strings.Contains(string(doc), base+" ") {
				t.Errorf("%s names %s, which doc.go does not", name, metric)
			}
		}
	}
}

// WithPathLabel(nil) is the default: all paths share one series.
func TestNilPathLabel(t *testing.T) {
	observer, err := prometheus.New(client.NewRegistry(), prometheus.WithPathLabel(nil))
	if err != nil {
		t.Fatal(err)
	}
	observer.HoldStarted(session.HoldStarted{Path: "/l"})
}
