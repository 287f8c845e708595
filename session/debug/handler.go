package debug

import (
	"encoding/json"
	"expvar"
	"html/template"
	"net/http"
	"strings"
	"time"

	"github.com/go-zksync/toolkit/session"
)

// Handler returns an HTTP handler that shows the Stats of Managers. The handler answers
// with a page, or with JSON if the request has ?format=json or an Accept header that
// names application/json and not text/html ahead of it. The handler ignores the weights in the
// header. It sends no requests to ZooKeeper.
func Handler(managers ...*session.Manager) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		all := make([]session.Stats, 0, len(managers))
		for _, m := range managers {
			all = append(all, m.Stats())
		}
		w.Header().Set("Cache-Control", "no-store")
		if r.FormValue("format") == "json" || prefersJSON(r.Header.Values("Accept")) {
			w.Header().Set("Content-Type", "application/json")
			encoder := json.NewEncoder(w)
			encoder.SetIndent("", "  ")
			_ = encoder.Encode(all) // an error means that the client has gone
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_ = page.Execute(w, all) // as above
	})
}

// prefersJSON reports whether the Accept headers name JSON, and the page not ahead of it.
func prefersJSON(accept []string) bool {
	for media := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		name, _, _ := strings.Cut(media, ";")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "application/json":
			return true
		case "text/html":
			return false
		}
	}
	return false
}

// Publish publishes the Stats of m as a variable of expvar. Like expvar.Publish it panics
// if the name is in use.
func Publish(name string, m *session.Manager) {
	expvar.Publish(name, expvar.Func(func() any { return m.Stats() }))
}

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"ago": func(t time.Time) string {
		if t.IsZero() {
			return "never"
		}
		return time.Since(t).Round(time.Millisecond).String()
	},
	"until": func(t time.Time) string {
		if t.IsZero() {
			return "none"
		}
		return time.Until(t).Round(time.Millisecond).String()
	},
}).Parse(`<!DOCTYPE html>
<html><head><title>ZooKeeper sessions</title><style>body{font-family:sans-serif}td,th{text-align:left;padding:2px 12px 2px 0}</style></head><body>
{{range .}}<h1>{{.State}} for {{ago .Since}}</h1>
<table>
<tr><th>session</th><td>{{.Session}}</td></tr>
<tr><th>server</th><td>{{.Server}}</td></tr>
<tr><th>session timeout</th><td>{{.Timeout}}</td></tr>
<tr><th>proven alive for another</th><td>{{until .Deadline}}</td></tr>
<tr><th>connections opened</th><td>{{.Connections}}</td></tr>
<tr><th>sessions lost</th><td>{{.Lost}}</td></tr>
<tr><th>requests</th><td>{{.Requests}}, {{.InFlight}} unanswered, {{.Abandoned}} abandoned</td></tr>
<tr><th>held</th><td>{{.Held}}</td></tr>
<tr><th>watches</th><td>{{.Watches}}, {{.IdleWatches}} idle</td></tr>
</table>
{{if .Servers}}<h2>Servers</h2><ul>{{range .Servers}}<li>{{.}}</li>{{end}}</ul>{{end}}
<h2>{{.WaitCount}} calls wait</h2>
<table>{{range .Waits}}<tr><td>{{.Op}}</td><td>{{.Path}}</td><td>{{ago .Since}}</td></tr>{{end}}</table>
{{else}}<p>no Manager</p>{{end}}</body></html>
`))
