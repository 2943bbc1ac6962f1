package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"reprise/cmd/reprise/internal/cli"
)

// simulatedRuns writes results of a small workload on each of the numbers of engines,
// and returns their files.
func simulatedRuns(t *testing.T, replicas ...string) (dir string, files []string) {
	t.Helper()
	dir = t.TempDir()
	log := filepath.Join(dir, "mooncake_conversation.jsonl")
	if err := os.WriteFile(log, []byte(sharingLog(150)), 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, "import", log, "-o", filepath.Join(dir, "w.parquet"))
	for _, n := range replicas {
		file := filepath.Join(dir, "with"+n+".parquet")
		must(t, "simulate", filepath.Join(dir, "w.parquet"), "--preset", "l4-qwen2.5-0.5b", "--replicas", n, "-o", file)
		files = append(files, file)
	}
	return dir, files
}

func TestReportOfSeveralRuns(t *testing.T) {
	dir, files := simulatedRuns(t, "1", "2")
	html := filepath.Join(dir, "x.html")
	text := must(t, "report", files[0], files[1], "--gpus", "1,2", "--html", html)
	for _, want := range []string{"with1", "with2", "Output/s per GPU", "trustworthy by itself", "reprise compare tells a difference from noise"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if page, err := os.ReadFile(html); err != nil || !strings.Contains(string(page), "Report of 2 runs") {
		t.Errorf("the page: %v", err)
	}

	var runs []struct {
		Name       string
		Efficiency struct{ GPUs int }
	}
	out := must(t, "report", files[0], files[1], "--name", "one, two", "--gpus", "8", "--json")
	if err := json.Unmarshal([]byte(out), &runs); err != nil || len(runs) != 2 || runs[1].Name != "two" || runs[1].Efficiency.GPUs != 8 {
		t.Errorf("%v: %+v", err, runs)
	}
	if out := must(t, "report", files[0], files[0]); !strings.Contains(out, "with1 (2)") {
		t.Error("two runs of one name are not told apart")
	}
}

// What cannot be done with several results is refused before any is read.
func TestReportOfSeveralRunsRefuses(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.parquet"), filepath.Join(dir, "b.parquet")
	for _, args := range [][]string{
		{a, b, "--name", "one"}, {a, b, "--name", "same,same"}, {a, b, "--name", "x, "}, {a, b, "--gpus", "0"}, {a, b, "--gpus", "1,2,3"}, {a, "--gpus", "1,2"},
		{a, b, "--definitions", "vllm"}, {a, b, "--format", "vllm"}, {},
	} {
		if _, errs, code := reprise(t, append([]string{"report"}, args...)...); code != cli.Usage {
			t.Errorf("%v: exit code %d: %s", args, code, errs)
		}
	}
	if _, _, code := reprise(t, "report", a, b); code != cli.Failure {
		t.Error("files that are not there were reported")
	}
}

// chromium runs a page without a network and returns its document, and what its
// console said.
func chromium(t *testing.T, path, html string) (document, console string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr",
		"--user-data-dir="+filepath.Join(t.TempDir(), "profile"), "--window-size=1200,2400", "--dump-dom", "file://"+html)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("the browser does not run here: %v", err)
	}
	return string(out), strings.Join(regexp.MustCompile(`.*CONSOLE.*`).FindAllString(errs.String(), -1), "\n")
}

// The page of a replay of Mooncake's trace shows every plot in a browser that has
// no network, and its console stays silent.
func TestBrowserShowsMooncake(t *testing.T) {
	long(t)
	var browser string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil && browser == "" {
			browser = path
		}
	}
	if browser == "" {
		t.Skip("no chromium in PATH: the page is not tried in a browser")
	}
	src, dir := shared(t, "mooncake_conversation.jsonl"), t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	must(t, "import", src, "-o", file("t.parquet"))
	must(t, "synth", "--mirror", file("t.parquet"), "-o", file("w.parquet"))
	must(t, "replay", file("w.parquet"), "--url", simulate(t), "--speed", "100", "--max-requests", "300", "-o", file("r.parquet"), "--html", file("r.html"))
	must(t, "simulate", file("t.parquet"), "--preset", "document-h100-llama-70b", "--replicas", "4", "-o", file("s.parquet"), "--html", file("s.html"))
	reprise(t, "report", file("r.parquet"), file("s.parquet"), "--html", file("both.html")) // whatever the verdict on a busy machine
	for _, name := range []string{"r", "s", "both"} {
		document, console := chromium(t, browser, file(name+".html"))
		m := regexp.MustCompile(`<body data-plots="(\d+)"(?: data-plots-drawn="(\d+)")?(?: data-errors="(\d+)")?`).FindStringSubmatch(document)
		if m == nil || m[1] == "0" || m[1] != m[2] || m[3] != "" {
			t.Errorf("%s: plots, drawn and errors are %q", name, m)
		}
		if console != "" {
			t.Errorf("%s: the console says %s", name, console)
		}
	}
}
