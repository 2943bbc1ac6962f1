package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/engine"
	"reprise/replay/result"
)

// quickServer is a server that answers at once, behind a handler that may answer in its place.
func quickServer(t *testing.T, before func(w http.ResponseWriter, r *http.Request) (answered bool)) string {
	t.Helper()
	c := engine.DefaultServerConfig()
	c.Engine.Costs = engine.Costs{}
	s, err := engine.NewServer(c)
	if err != nil {
		t.Fatal(err)
	}
	handler := s.Handler()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before == nil || !before(w, r) {
			handler.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// A server that would refuse every request is asked before the load, whatever makes the prompts, so that nobody waits
// for a run of failures, and no file of them stands in the way of the next one.
func TestServersAreAskedBeforeTheLoad(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "")
	refuse := func(status int, body string) func(w http.ResponseWriter, r *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, "/completions") {
				return false
			}
			w.WriteHeader(status)
			fmt.Fprint(w, body)
			return true
		}
	}
	file := conversations(t, 5)
	t.Chdir(t.TempDir())
	for _, load := range []string{file, "--input-tokens 20 --output-tokens 3 --requests 5"} {
		for _, server := range []struct {
			status     int
			body, says string
		}{
			{401, `{"error":{"message":"Incorrect API key provided"}}`, "Set OPENAI_API_KEY to the API key"},
			{404, `{"error":{"message":"The model does not exist"}}`, "Name one with --model"},
		} {
			line := "replay " + load + " --model other --concurrency 2 -o r.parquet --url "
			_, errs, code := reprise(t, strings.Fields(line+quickServer(t, refuse(server.status, server.body)))...)
			if code != cli.Failure || !strings.Contains(errs, server.says) {
				t.Errorf("%s at a server with %d: exit code %d\n%s", load, server.status, code, errs)
			}
		}
		_, errs, code := reprise(t, strings.Fields("replay "+load+" --concurrency 2 -o r.parquet --url "+
			"http://127.0.0.1:1 --model m")...)
		if code != cli.Failure || !strings.Contains(errs, "Check that the server runs and that --url names it") {
			t.Errorf("%s at no server: exit code %d\n%s", load, code, errs)
		}
	}
}

// What is said of an endpoint names the API that the prompts of the file go to, and a server without it is noticed
// before the load.
func TestPromptFilesNameTheirAPI(t *testing.T) {
	t.Chdir(t.TempDir())
	without := func(path string) func(w http.ResponseWriter, r *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if path == "" || !strings.HasSuffix(r.URL.Path, path) {
				return false
			}
			w.WriteHeader(404)
			fmt.Fprint(w, `{"detail":"Not Found"}`)
			return true
		}
	}
	const chat, text = `{"messages":[{"role":"user","content":"hello"}]}` + "\n", `{"prompt":"tell me"}` + "\n"
	for _, one := range []struct {
		name, file, lacks, says string
		refused                 bool
	}{
		{"p.txt", "[INST] hello\nhow are you\n", "", "prompts as in the source, sent to completions", false},
		{"p.txt", "hello\n", "/v1/completions", "it has no completions API, so requests go to chat", false},
		{"c.jsonl", chat, "", "prompts as in the source, sent to chat\n", false},
		{"c.jsonl", chat, "/chat/completions", "HTTP 404", true},
		{"b.jsonl", chat + text, "", "prompts as in the source, sent to chat and completions", false},
	} {
		if err := os.WriteFile(one.name, []byte(one.file), 0o600); err != nil {
			t.Fatal(err)
		}
		line := "replay " + one.name + " --concurrency 1 -o r.parquet --overwrite --url " +
			quickServer(t, without(one.lacks))
		if _, errs, code := reprise(t, strings.Fields(line)...); (code == cli.Failure) != one.refused ||
			!strings.Contains(errs, one.says) {
			t.Errorf("%q without %q: exit code %d, want %q in\n%s", one.file, one.lacks, code, one.says, errs)
		}
	}
}

// A server may count nothing, or have no use for a prompt of one word: the run shows what it makes of the real ones.
func TestPromptsGoToServersThatRefuseOneWord(t *testing.T) {
	file := conversations(t, 5)
	t.Chdir(t.TempDir())
	var asked atomic.Int64
	url := quickServer(t, func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/completions") {
			return false
		}
		asked.Add(1)
		w.WriteHeader(400)
		fmt.Fprint(w, `{"error":{"message":"the prompt is too short"}}`)
		return true
	})
	_, errs, code := reprise(t, strings.Fields("replay "+file+" --model m --concurrency 2 -o r.parquet --url "+url)...)
	if code != cli.Untrusted || asked.Load() < 5 {
		t.Errorf("%d requests, exit code %d\n%s", asked.Load(), code, errs)
	}
}

// A file of prompts lasts as long as --duration says, in rounds, and no request of it has a session unless sessions are
// asked for.
func TestPromptFilesLastAsLongAsAsked(t *testing.T) {
	file := conversations(t, 3)
	t.Chdir(t.TempDir())
	url := quickServer(t, nil)
	sent := func(flags string) (out []result.Result) {
		line := "replay " + file + " -o r.parquet --overwrite --output-tokens 2 --url " + url + " " + flags
		_, errs, code := reprise(t, strings.Fields(line)...)
		if code != cli.Good && code != cli.Untrusted {
			t.Fatalf("%s: exit code %d\n%s", flags, code, errs)
		}
		_, out = targetResults(t, "r.parquet")
		return out
	}
	once := len(sent("--concurrency 1"))
	for _, load := range []string{"--concurrency 1", "--rate 100"} {
		rows := sent(load + " --duration 1s")
		if last := rows[len(rows)-1]; len(rows) < 2*once || time.Duration(last.DueNS) > 1050*time.Millisecond {
			t.Errorf("%s: %d requests, the last due at %v; one round has %d", load, len(rows),
				time.Duration(last.DueNS), once)
		}
		for i := range rows {
			if rows[i].Session != nil || rows[i].Turn != nil {
				t.Fatalf("%s: request %d has a session or a turn", load, i)
			}
		}
	}

	if n := len(sent("--concurrency 1 --max-requests 2 --duration 1s")); n != 2 {
		t.Errorf("%d requests, and 2 were asked for", n)
	}
	turns := 0
	for _, row := range sent("--concurrency 1 --as-sessions") {
		if row.Session != nil && row.Turn != nil && *row.Turn > 0 {
			turns++
		}
	}
	if turns == 0 {
		t.Error("no request is a later turn with --as-sessions")
	}
}

// A text has a prompt on each line, and one that begins as JSON is read as that. What is wrong with it is said by its
// own lines, and a command line to paste has flags of import alone.
func TestPromptsOfAText(t *testing.T) {
	t.Chdir(t.TempDir())
	var sent sync.Map
	url := quickServer(t, func(_ http.ResponseWriter, r *http.Request) bool {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		var asked struct {
			Prompt string `json:"prompt"`
		}
		if json.Unmarshal(body, &asked) == nil {
			sent.Store(asked.Prompt, true)
		}
		return false
	})
	writeFiles(t, map[string]string{
		"plain.txt":  "\ufeffTell me of \"blocks\" & <spans>.\n\n  How long is 1 km?  \r\nSay {no} more",
		"inst.txt":   "[INST] Hello [/INST]\n{{name}}, hello\n",
		"lines.TXT":  `{"prompt":"as JSON"}` + "\n",
		"bom.txt":    "\ufeff" + `{ "prompt":"behind a mark"}` + "\n",
		"empty.txt":  "\n \n",
		"table.csv":  "wann;frage\n2026-02-01 10:00:00;hallo welt\n2026-02-01 10:00:01;und nun\n",
		"prompts.md": "no table and no JSON\n",
	})
	for _, file := range []string{"plain.txt", "inst.txt", "lines.TXT", "bom.txt"} {
		_, errs, code := reprise(t, "replay", file, "--url", url, "--concurrency", "1", "--output-tokens", "2",
			"-o", "r.parquet")
		if code != cli.Good && code != cli.Untrusted {
			t.Errorf("%s: exit code %d\n%s", file, code, errs)
		}
	}
	for _, want := range []string{`Tell me of "blocks" & <spans>.`, "  How long is 1 km?  ", "Say {no} more",
		"[INST] Hello [/INST]", "{{name}}, hello", "as JSON", "behind a mark"} {
		if _, ok := sent.Load(want); !ok {
			t.Errorf("%q was not sent", want)
		}
	}

	for file, want := range map[string]string{"empty.txt": "empty.txt", "table.csv": "reprise import table.csv " +
		"--map time=wann --map prompt=frage -o table.parquet"} {
		_, errs, code := reprise(t, "replay", file, "--url", url, "--rate", "3", "--set", "tls-insecure", "-o",
			"r.parquet")
		if code == cli.Good || !strings.Contains(strings.ReplaceAll(errs, " \\\n   ", ""),
			want) || strings.Contains(errs, "--rate") {
			t.Errorf("%s: exit code %d\n%s", file, code, errs)
		}
	}
}

// A model that servers do not list, and answer for all the same, is named; one that they list is not.
func TestUnlistedModels(t *testing.T) {
	t.Chdir(t.TempDir())
	url := quickServer(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/v1/models" {
			return false
		}
		fmt.Fprint(w, `{"object":"list","data":[{"id":"tiny","object":"model"}]}`)
		return true
	})
	for model, named := range map[string]bool{"tiny": false, "other": true} {
		_, errs, _ := reprise(t, strings.Fields("replay --input-tokens 20 --output-tokens 3 --requests 3 "+
			"--concurrency 1 --overwrite -o r.parquet --model "+model+" --url "+url)...)
		if strings.Contains(errs, "the server does not list the model other, only tiny") != named {
			t.Errorf("--model %s\n%s", model, errs)
		}
	}
}
