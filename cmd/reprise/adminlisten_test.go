package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/engine"
)

// A client that runs is scraped, and the dashboard asks for nothing that neither it nor
// an engine with vLLM's names has.
func TestAdminListen(t *testing.T) {
	long(t)
	dashboard, err := os.ReadFile("../../examples/grafana/dashboard.json")
	if err != nil || !json.Valid(dashboard) {
		t.Fatal(err)
	}
	docs, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	c := engine.DefaultServerConfig()
	c.Engine.KVTokens, c.Engine.Costs = 1_000_000, engine.Costs{}
	sim, err := engine.NewServer(c)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(sim.Handler())
	defer server.Close()
	must(t, "synth", "chat", "-n", "40", "-o", "w.parquet")
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	line := []string{"replay", "w.parquet", "--url", server.URL, "--rate", "constant:20", "-o", "r.parquet", "--scrape", "none"}
	_, errs, code := reprise(t, append(line, "--set", "admin-listen="+address)...)
	if want := "is in use: stop the process that uses it, choose another port, or use port 0 for any free one"; code != cli.Usage || !strings.Contains(errs, want) {
		t.Errorf("exit code %d, %s", code, errs)
	}
	free.Close()

	page := make(chan string, 1)
	go func() {
		last := ""
		defer func() { page <- last }()
		for begun := time.Now(); time.Since(begun) < 30*time.Second; time.Sleep(50 * time.Millisecond) {
			answer, err := http.Get("http://" + address + "/metrics")
			if err != nil {
				if last != "" {
					return // the run is over, and so is the listener
				}
				continue
			}
			if b, err := io.ReadAll(answer.Body); err == nil {
				last = string(b)
			}
			answer.Body.Close()
		}
	}()
	_, errs, code = reprise(t, append(line, "--set", "admin-listen="+address)...)
	if code != cli.Good && code != cli.Untrusted || !strings.Contains(errs, "metrics of this client: http://"+address+"/metrics\n") {
		t.Fatalf("exit code %d\n%s", code, errs)
	}
	client := <-page
	if sent := regexp.MustCompile(`(?m)^reprise_requests_sent_total [1-9]`); !sent.MatchString(client) || !strings.Contains(client, "reprise_requests_planned 40") {
		t.Error(client)
	}
	answer, err := http.Get(server.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	engines, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	exposed := regexp.MustCompile(`(?m)^[a-z][\w:]*`).FindAllString(client+"\n"+string(engines), -1)
	exposed = append(exposed, "reprise_requests_failed_total") // which a run without failures has not
	asked := regexp.MustCompile(`(reprise_|vllm:)\w+`).FindAllString(string(dashboard), -1)
	if len(asked) < 40 {
		t.Errorf("the dashboard asks for %d metrics", len(asked))
	}
	for _, name := range asked {
		if !slices.Contains(exposed, name) {
			t.Errorf("the dashboard asks for %s, which nothing has", name)
		}
	}
	for _, name := range exposed {
		base := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
		suffix := strings.TrimPrefix(base, "reprise_requests")
		if strings.HasPrefix(base, "reprise_") && !strings.Contains(string(docs), "`"+base) && !strings.Contains(string(docs), "`"+suffix+"`") {
			t.Errorf("docs/operations.md does not have %s", base)
		}
	}
}

// What cannot be meant is refused before anything is sent.
func TestAdminListenMistakes(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, "synth", "chat", "-n", "4", "-o", "w.parquet")
	for line, want := range map[string]string{
		"replay w.parquet -o r.parquet --set admin-listen=localhost":                 "--set admin-listen=localhost: want a port, or an address and a port, such as 9090 or localhost:9090",
		"replay w.parquet --dry-run --set admin-listen=9090":                         "--set admin-listen and --dry-run cannot be used together",
		"sweep chat --preset l4-qwen2.5-0.5b --rates 5 --set admin-listen=9090 -o s": "--set admin-listen needs a client that sends requests: a simulation has none",
	} {
		var out, errs bytes.Buffer
		if code := run(context.Background(), strings.Fields(line), strings.NewReader(""), &out, &errs); code != cli.Usage || !strings.Contains(errs.String(), want) {
			t.Errorf("%s: exit code %d\n%s", line, code, errs.String())
		}
	}
}
