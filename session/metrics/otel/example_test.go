package otel_test

import (
	"context"
	"fmt"
	"log"

	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/session/metrics/otel"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// The observer fills instruments of a meter, which a reader exports.
func ExampleNew() {
	srv, err := zkserver.New(zkserver.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()

	reader := sdk.NewManualReader() // a program uses a reader that exports
	provider := sdk.NewMeterProvider(sdk.WithReader(reader))
	observer, err := otel.New(provider.Meter("example"))
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	m, err := session.Connect(ctx, "127.0.0.1:2181", session.WithDialer(srv.Dial), session.WithObserver(observer))
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	if err := m.Do(ctx, func(ctx context.Context, s *session.Session) error { return s.Sync(ctx, "/") }); err != nil {
		log.Fatal(err)
	}
	var all metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &all); err != nil {
		log.Fatal(err)
	}
	for _, scope := range all.ScopeMetrics {
		for _, metric := range scope.Metrics {
			fmt.Println(metric.Name)
		}
	}
	// Output:
	// zksync.connected
	// zksync.request.duration
}
