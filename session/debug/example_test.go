package debug_test

import (
	"context"
	"expvar"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/session/debug"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

func connect() (*session.Manager, func()) {
	srv, err := zkserver.New(zkserver.Config{})
	if err != nil {
		log.Fatal(err)
	}
	m, err := session.Connect(context.Background(), "127.0.0.1:2181", session.WithDialer(srv.Dial))
	if err != nil {
		log.Fatal(err)
	}
	return m, func() {
		m.Close()
		srv.Close()
	}
}

// The page belongs behind the address for debugging, beside pprof and expvar.
func ExampleHandler() {
	m, stop := connect()
	defer stop()

	mux := http.NewServeMux()
	mux.Handle("/debug/zookeeper", debug.Handler(m))

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest("GET", "/debug/zookeeper?format=json", nil))
	fmt.Println(w.Code, w.Header().Get("Content-Type"), strings.Contains(w.Body.String(), `"state": "Connected"`))
	// Output: 200 application/json true
}

// A variable of expvar appears at /debug/vars.
func ExamplePublish() {
	m, stop := connect()
	defer stop()

	debug.Publish("zookeeper", m)
	fmt.Println(strings.Contains(expvar.Get("zookeeper").String(), `"state":"Connected"`))
	// Output: true
}
