package main

import (
	"encoding/xml"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/cmd/reprise/internal/cli"
)

// Each format is written to stdout or a file, and is what it says.
func TestReportFormats(t *testing.T) {
	results := resultsOf150(t)
	for format, begins := range map[string]string{"markdown": "# Simulation report\n", "csv": "name,of,unit,statistic,value,count\n", "junit": xml.Header, "prometheus": "# HELP reprise_info", "text": "Simulated", "json": "{"} {
		out := must(t, "report", results, "--format", format)
		if !strings.HasPrefix(out, begins) {
			t.Errorf("%s begins with %.60q", format, out)
		}
		file := filepath.Join(t.TempDir(), "out")
		must(t, "report", results, "--format", format, "-o", file)
		if doc, err := os.ReadFile(file); err != nil || string(doc) != out {
			t.Errorf("%s: the file differs from stdout, error %v", format, err)
		}
	}
}

// A push takes its credentials from the environment or a file alone.
func TestReportPush(t *testing.T) {
	results := resultsOf150(t)
	var user, body string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		user, _, _ = r.BasicAuth()
		body = string(b)
		if user == "" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer srv.Close()
	t.Setenv("REPRISE_TEST_PUSH", "me:SECRET")
	must(t, "report", results, "--push", srv.URL, "--push-credentials-env", "REPRISE_TEST_PUSH")
	if user != "me" || !strings.Contains(body, "reprise_trustworthy") {
		t.Errorf("user %q, body %.80q", user, body)
	}
	if _, errs, code := reprise(t, "report", results, "--push", srv.URL); code != cli.Failure || !strings.Contains(errs, "HTTP 401") {
		t.Errorf("without credentials: exit code %d, %s", code, errs)
	}
	for _, args := range [][]string{
		{"--push", "http://me:SECRET@127.0.0.1"}, {"--push", srv.URL, "--push-credentials-env", "REPRISE_TEST_UNSET"}, {"--push-credentials-file", "x"},
		{"--format", "yaml"}, {"--format", "csv", "--json"}, {"--explain", "ttft", "--format", "csv"},
	} {
		if _, errs, code := reprise(t, append([]string{"report", results}, args...)...); code != cli.Usage || strings.Contains(errs, "SECRET") {
			t.Errorf("%q: exit code %d, %s", args, code, errs)
		}
	}
}
