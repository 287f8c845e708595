package prometheus_test

import (
	"context"
	"fmt"
	"log"
	"regexp"

	client "github.com/prometheus/client_golang/prometheus"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/session/metrics/prometheus"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// The metrics of a program that creates a znode.
func ExampleNew() {
	srv, err := zkserver.New(zkserver.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()

	registry := client.NewRegistry()
	observer, err := prometheus.New(registry)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	m, err := session.Connect(ctx, "127.0.0.1:2181", session.WithDialer(srv.Dial), session.WithObserver(observer))
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	s, err := m.Session(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := s.Create(ctx, "/config", nil, 0); err != nil {
		log.Fatal(err)
	}
	for _, line := range regexp.MustCompile(`(?m)^zksync_(request.*count.*create|sessions_lost).*$`).FindAllString(scrape(registry), -1) {
		fmt.Println(line)
	}
	// Output:
	// zksync_request_duration_seconds_count{class="OK",op="create"} 1
	// zksync_sessions_lost_total 0
}
