package debug_test

import (
	"encoding/json"
	"expvar"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/session/debug"
	"github.com/go-zksync/toolkit/zksynctest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The page, the JSON and the expvar variable show the state, the session and the calls
// that wait.
func TestHandler(t *testing.T) {
	m := zksynctest.Start(t).Connect(t)
	wait := m.StartWait("lock", "/locks/<orders>", nil)
	defer wait.Stop()
	name := fmt.Sprintf("zookeeper-test-%p", m) // a variable stays for all runs of the test
	debug.Publish(name, m)
	h := debug.Handler(m)

	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/?format=json", nil))
	var all []session.Stats
	if err := json.Unmarshal(w.Body.Bytes(), &all); err != nil || len(all) != 1 {
		t.Fatalf("%s: %v", w.Body, err)
	}
	if st := all[0]; st.State != "Connected" || !strings.HasPrefix(st.Session, "0x") || len(st.Waits) != 1 || st.Waits[0].Path != "/locks/<orders>" {
		t.Errorf("stats %+v", st)
	}
	w = httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	for _, part := range []string{"Connected", all[0].Session, "/locks/&lt;orders&gt;", "1 calls wait"} {
		if !strings.Contains(w.Body.String(), part) {
			t.Errorf("the page does not say %q:\n%s", part, w.Body)
		}
	}
	if v := expvar.Get(name).String(); !strings.Contains(v, all[0].Session) {
		t.Errorf("expvar: %s", v)
	}
}

// The handler answers with JSON to an Accept header that names application/json, unless it names text/html first.
func TestAccept(t *testing.T) {
	h := debug.Handler()
	for accept, want := range map[string]string{
		"application/json":                          "application/json",
		"application/json, text/plain, */*":         "application/json",
		"*/*;q=0.1, Application/JSON;charset=utf-8": "application/json",
		"application/json,text/html;q=0.9":          "application/json",
		"text/html,application/json;q=0.9":          "text/html; charset=utf-8",
		"text/html,application/xhtml+xml,*/*;q=0.8": "text/html; charset=utf-8",
		"text/plain, application/json-seq":          "text/html; charset=utf-8",
		"":                                          "text/html; charset=utf-8",
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Accept", accept)
		h.ServeHTTP(w, r)
		if got := w.Header().Get("Content-Type"); got != want {
			t.Errorf("Accept: %s: the answer is %s, want %s", accept, got, want)
		}
	}
}
