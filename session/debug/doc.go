// Package debug shows what a Manager does at present: as a page for people, as JSON, and
// as a variable of expvar. It is a package of its own because expvar adds a handler to
// http.DefaultServeMux.
//
//	http.Handle("/debug/zookeeper", debug.Handler(m))
//	debug.Publish("zookeeper", m)
//
// The page names servers, paths and session ids, and no data and no credentials. It is
// for operators: do not serve it to the public.
package debug
