package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"reprise/trace/usage"
	"reprise/trace/usage/usagetest"
)

// A usage that cannot be is counted and said by whoever reads it: the client of a replay, the
// recorder that the answers go through, and the import of a log that has it.
func TestUsageThatCannotBeIsSaid(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFiles(t, map[string]string{"w.yaml": "requests: 3\narrivals: poisson:50\nlengths: {input: 30, output: 40}\n"})
	must(t, "synth", "w.yaml", "-o", "w.parquet")
	for i, b := range append(usagetest.Broken(), usagetest.Dialects()[0]) {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/models") {
				fmt.Fprint(w, `{"data":[{"id":"m"}]}`)
				return
			}
			body, _ := io.ReadAll(r.Body)
			if !strings.Contains(string(body), `"stream":true`) {
				fmt.Fprintf(w, `{"choices":[{"index":0,"text":" a","finish_reason":"length"}],"usage":%s}`, b.Usage)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			for _, data := range []string{`{"choices":[{"index":0,"text":" a text of twenty tokens or so"}]}`, `{"choices":[{"index":0,"text":" and the rest","finish_reason":"length"}]}`, `{"choices":[],"usage":` + b.Usage + `}`, "[DONE]"} {
				fmt.Fprintf(w, "data: %s\n\n", data)
			}
		}))
		var replayed string
		recorded, _ := recordWhile(t, []string{"record", "--upstream", server.URL, "--listen", "127.0.0.1:0", "-o", fmt.Sprint("recorded", i)}, func(url, _ string) {
			_, replayed, _ = reprise(t, "replay", "w.parquet", "--url", url, "--api", "completions", "--tokenizer", "o200k_base", "--force-output=false", "--quiet", "-o", fmt.Sprint("r", i, ".parquet"))
		})
		server.Close()
		writeFiles(t, map[string]string{"log.jsonl": `{"timestamp":"2026-01-02T03:04:05Z","model":"m","messages":[{"role":"user","content":"x"}],"response":{"usage":` + b.Usage + `}}` + "\n"})
		_, imported, _ := reprise(t, "import", "log.jsonl", "-o", fmt.Sprint("t", i, ".parquet"))
		for who, said := range map[string]string{"replay": replayed, "record": recorded, "import": imported} {
			if n := findingsIn(said); (n == 0) != (i == len(usagetest.Broken())) {
				t.Errorf("%s, %s: %d findings are said in\n%s", who, b.Name, n, said)
			}
		}
	}
}

// findingsIn counts the findings about usage in what a command says.
func findingsIn(said string) (n int) {
	said = strings.Join(strings.Fields(said), " ")
	all := ^usage.Findings(0)
	for _, one := range all.All() {
		if strings.Contains(said, one.Says()) {
			n++
		}
	}
	return n
}
