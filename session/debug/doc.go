// Package debug shows the present activity of a Manager as an HTML page, as JSON, and as
// a variable of expvar. The package is separate from session because expvar adds a
// handler to http.DefaultServeMux.
//
//	http.Handle("/debug/zookeeper", debug.Handler(m))
//	debug.Publish("zookeeper", m)
//
// The page contains servers, paths and session ids, but no data and no credentials. The
// page is for operators: do not serve it to the public.
package debug
