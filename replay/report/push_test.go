package report

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A push puts the text format where a gateway takes it, with the credentials; what the
// gateway says against it is told, and no secret.
func TestPush(t *testing.T) {
	s := formatted(t, smallRun)
	var got *http.Request
	var body string
	status, says := http.StatusOK, ""
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got, body = r, string(b)
		if status == http.StatusFound {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(status)
		io.WriteString(w, says)
	}))
	defer srv.Close()
	push := func(p Pusher) error { got = nil; return p.Push(t.Context(), s) }

	for path, want := range map[string]string{"": pushJob, "/": pushJob, "/base/": "/base" + pushJob, "/metrics/job/nightly/gpu/h100": "/metrics/job/nightly/gpu/h100"} {
		if err := push(Pusher{URL: srv.URL + path, Credentials: "me:S:ECRET"}); err != nil {
			t.Fatal(err)
		}
		if user, password, ok := got.BasicAuth(); !ok || user != "me" || password != "S:ECRET" || got.Method != http.MethodPut || got.URL.Path != want {
			t.Errorf("%q: %s %s, %q %q", path, got.Method, got.URL.Path, user, password)
		}
	}
	if n := len(families(t, body)); n < 20 {
		t.Errorf("%d families were pushed", n)
	}
	if err := push(Pusher{URL: srv.URL, Credentials: "SECRET"}); err != nil || got.Header.Get("Authorization") != "Bearer SECRET" {
		t.Errorf("%v, error %v", got.Header, err)
	}
	for _, c := range []struct {
		status int
		says   string
		want   string
	}{
		{400, "pushed metrics are\ninvalid \x1b[31m", "HTTP 400: pushed metrics are invalid ?[31m"},
		{401, "<html>no</html>", "HTTP 401"},
		{http.StatusFound, "", "HTTP 302"},
	} {
		status, says = c.status, c.says
		err := push(Pusher{URL: srv.URL, Credentials: "SECRET"})
		if err == nil || !strings.HasSuffix(err.Error(), c.want) || strings.Contains(err.Error(), "SECRET") || got.URL.Path == "/elsewhere" {
			t.Errorf("%d: %v", c.status, err)
		}
	}
	srv.Close()
	if err := push(Pusher{URL: srv.URL, Credentials: "SECRET"}); err == nil || strings.Contains(err.Error(), "SECRET") {
		t.Errorf("nobody there: %v", err)
	}
	for _, bad := range []string{"", "localhost:9091", "ftp://x", "http://me:SECRET@x", "http://x/?a=b", "http://x/%zz"} {
		if err := (&Pusher{URL: bad}).Check(); err == nil || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
