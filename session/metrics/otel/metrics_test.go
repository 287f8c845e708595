package otel_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/session/metrics/otel"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// collect returns the value of each instrument. The value of a histogram is its count.
func collect(t *testing.T, reader sdk.Reader) map[string]string {
	t.Helper()
	var rm metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &rm); err != nil {
		t.Fatal(err)
	}
	values := make(map[string]string)
	set := func(name string, attrs attribute.Set, v any) {
		values[name+"{"+attrs.Encoded(attribute.DefaultEncoder())+"}"] = fmt.Sprint(v)
	}
	for _, scope := range rm.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					set(m.Name, p.Attributes, p.Value)
				}
			case metricdata.Gauge[int64]:
				for _, p := range data.DataPoints {
					set(m.Name, p.Attributes, p.Value)
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					set(m.Name, p.Attributes, p.Count)
				}
			}
		}
	}
	return values
}

// The SDK collects metrics of a program's locks, waits, losses and queues.
func TestMetrics(t *testing.T) {
	reader := sdk.NewManualReader()
	meter := sdk.NewMeterProvider(sdk.WithReader(reader)).Meter("test")
	observer, err := otel.New(meter, otel.WithPathAttribute(func(path string) string { return path }))
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
	if err := q.Put(t.Context(), []byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Len(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Here: the consumer may list the queue again when it has removed the message.
	if name, got := "zksync.queue.length{path=/q}", collect(t, reader); got[name] != "1" {
		t.Errorf("%s is %q, want 1", name, got[name])
	}
	<-q.Chan()
	q.Close()
	s, err := m.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	srv.ExpireSession(s.ID())
	<-s.Done()
	if _, err := m.Session(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := collect(t, reader)
	for name, want := range map[string]string{
		"zksync.connected{}":                              "1",
		"zksync.sessions.lost{}":                          "1",
		"zksync.holds{path=/l}":                           "0",
		"zksync.hold.duration{lost=true,path=/l}":         "1",
		"zksync.wait.duration{op=lock,outcome=cancelled}": "1",
		"zksync.queue.delivered{path=/q}":                 "1",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %s", name, got[name], want)
		}
	}
	requests := 0
	for name := range got {
		if len(name) > 23 && name[:23] == "zksync.request.duration" {
			requests++
		}
	}
	if requests < 4 || t.Failed() {
		t.Errorf("%d kinds of requests: %v", requests, got)
	}
	if _, err := otel.New(nil); err == nil {
		t.Error("no meter, and no error")
	}
}
