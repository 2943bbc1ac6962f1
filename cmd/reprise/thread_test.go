package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/openai"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/token"
)

// With its own replies in the prompts a server hits as often as generated KV
// lets it, by its count and by ours: published chats and an agent's session, in
// every way to send them. Turns wait as they do without.
func TestThreadsReuseReplies(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		log     string
		args    []string
		mirror  bool
		turns   int64   // of which threaded
		without float64 // hit ratio, of an agent's session without threads; a chat's is 0.424
		off     float64 // measured from expected
		how     []string
		speed   float64
		inexact bool
	}{
		{log: "sharegpt_sample.json", args: []string{"--arrivals", "poisson:20"}, turns: 1272, without: -1, off: 0.001, how: []string{"--api", "completions"}, speed: 1000},
		{log: "tracelab_example.jsonl", args: []string{"--allow-long-span"}, turns: 13, without: 0.8798, how: []string{"--api", "completions", "--token-ids"}, speed: 1e7},
		{log: "tracelab_example.jsonl", args: []string{"--allow-long-span"}, mirror: true, turns: 13, without: 0.8794, how: []string{"--api", "chat"}, speed: 1e7, inexact: true},
		{log: "tracelab_example.jsonl", args: []string{"--allow-long-span"}, mirror: true, turns: 13, without: 0.8794, how: []string{"--api", "messages"}, speed: 1e7, inexact: true},
	} {
		dir := t.TempDir()
		workload := filepath.Join(dir, "t.parquet")
		must(t, append([]string{"import", shared(t, c.log), "-o", workload, "--quiet"}, c.args...)...)
		if c.mirror {
			source := workload
			workload = filepath.Join(dir, "w.parquet")
			must(t, "synth", "--mirror", source, "-o", workload)
		}
		how := append([]string{"--json", "--speed", strconv.FormatFloat(c.speed, 'g', -1, 64)}, c.how...)
		if c.without >= 0 {
			if got := threadSummary(t, workload, how...).Cache.Measured; math.Round(got*1e4) != c.without*1e4 {
				t.Errorf("%s %v: hit ratio %.4f without threads", c.log, c.how, got)
			}
		}
		run, results, said := replayed(t, workload, append(how, "--thread")...)
		var prompts int64 // tokens, as the server counts them
		for _, r := range results {
			if r.Input != nil {
				prompts += int64(*r.Input)
			}
		}
		s := decodeSummary(t, said[:strings.LastIndex(said, "}\n")+2])
		if d := s.Cache.Measured - s.Cache.Expected; s.Cache.Measured < 0.8 || d > c.off || -d*float64(prompts) > float64(run.Thread.Longer*int64(run.Source.BlockSize)) { // a prompt that is longer than its row breaks a block
			t.Errorf("%s %v: hit ratio %.4f, expected %.4f, %g tokens below", c.log, c.how, s.Cache.Measured, s.Cache.Expected, -d*float64(prompts))
		}
		if th := run.Thread; th == nil || th.Threaded != c.turns || th.Recoded+th.NoReply+th.NoRoom != 0 || !strings.Contains(said, "turns hold the server's own reply") {
			t.Errorf("%s %v: %+v\n%s", c.log, c.how, th, said)
		}
		if e := s.Tokens.PromptError; e.SumAbs != 0 && !c.inexact || e.SumAbs != run.Thread.LongerBy {
			t.Errorf("%s %v: prompts are off by %d tokens, %d of them for want of room", c.log, c.how, e.SumAbs, run.Thread.LongerBy)
		}
		w, err := trace.Open(workload)
		if err != nil {
			t.Fatal(err)
		}
		r, err := w.Reader()
		rows := rowsOf(t, r, err)
		w.Close()
		if turns := checkCausal(t, c.log, rows, results, c.speed); turns < c.turns || run.Skipped+run.NotSent != 0 || len(results) != len(rows) {
			t.Errorf("%s %v: %d turns, run %+v", c.log, c.how, turns, run)
		}
	}
}

func threadSummary(t *testing.T, workload string, how ...string) summary {
	t.Helper()
	run, _, said := replayed(t, workload, how...)
	if run.Thread != nil || strings.Contains(said, "threads:") {
		t.Errorf("a run without threads tells of them: %s", said)
	}
	return decodeSummary(t, said[:strings.LastIndex(said, "}\n")+2])
}

// A talker answers completions with words that no prompt of ours has, counts
// tokens as they are, and looks at the journal meanwhile.
type talker struct {
	tok     *token.Encoding
	journal string

	mu       sync.Mutex
	answers  int
	repeated int // requests that hold an answer
	seen     bytes.Buffer
}

const canary = "Canarsie"

func (s *talker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	req, err := openai.DecodeRequest(r.Body, 1<<24)
	if err != nil {
		http.Error(w, canary, http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if b, err := os.ReadFile(s.journal); err == nil {
		s.seen.Write(b)
	}
	if strings.Contains(string(req.Prompt), canary) {
		s.repeated++
	}
	s.answers++
	if s.answers%40 == 0 {
		words := "overloaded"
		if strings.Contains(string(req.Prompt), canary) { // an error that quotes a word of the prompt, in which a reply is
			words = canary
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusInternalServerError)
		w.Write(openai.AppendError(nil, openai.ErrorDetail{Message: words, Type: words, Code: words}))
		return
	}
	// Beginnings that merge with a word before them, and ends of every kind.
	begin := []string{"", " ", "\n", "ing ", "'s ", "\n\n", "42"}[s.answers%7]
	end := []string{"", ".", "\n", " ", "…", "```\n", "x ="}[s.answers/7%7]
	text := begin + canary + strconv.Itoa(s.answers) + " says: hé, „no”" + end
	words := len(s.tok.Append(nil, text))
	usage := openai.Usage{PromptTokens: len(s.tok.Append(nil, string(req.Prompt))), CompletionTokens: words}
	usage.TotalTokens = usage.PromptTokens + words
	stop := "stop"
	w.Header().Set("Content-Type", "text/event-stream")
	var frame openai.Framing
	buf := frame.AppendChunk(nil, &openai.Chunk{Object: openai.ObjectCompletion, Choices: []openai.Choice{{Text: &text, FinishReason: &stop}}})
	buf = frame.AppendChunk(buf, &openai.Chunk{Object: openai.ObjectCompletion, Choices: []openai.Choice{}, Usage: &usage})
	w.Write(frame.AppendDone(buf))
}

// What a server writes goes back to it and nowhere else: not into results,
// journal or messages. Prompts are as long as recorded, by the server's count,
// whatever it writes.
func TestRepliesStayInMemory(t *testing.T) {
	long(t)
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	var log strings.Builder
	for i := range 400 {
		fmt.Fprintf(&log, `{"timestamp":%d,"input_length":%d,"output_length":20,"hash_ids":[%d,%d]}`+"\n", i*5, 520+i%4*100, i/4, 1000+i)
	}
	if err := os.WriteFile(file("log.jsonl"), []byte(log.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, "import", file("log.jsonl"), "-o", file("t.parquet"))
	sessions(t, file("t.parquet"), file("w.parquet"), 4)
	tok, err := token.Open("o200k_base")
	if err != nil {
		t.Fatal(err)
	}
	s := &talker{tok: tok, journal: result.JournalName(file("r.parquet"))}
	srv := httptest.NewServer(s)
	defer srv.Close()
	out, errs, code := reprise(t, "replay", file("w.parquet"), "--url", srv.URL, "--model", canary[:1], "--thread", "--force-output=false", "--json", "-o", file("r.parquet"), "--max-lag", "1h", "--max-errors", "1", "--max-stall-ttft", "-1", "--max-stall-gap", "-1")
	if code != cli.Good {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	if s.repeated < 200 {
		t.Fatalf("only %d prompts hold a reply\n%s", s.repeated, errs)
	}
	if e := decodeSummary(t, out).Tokens.PromptError; e.SumAbs > e.Compared/50 {
		t.Errorf("prompts are off by %d tokens over %d requests", e.SumAbs, e.Compared)
	} else {
		t.Logf("prompts are off by %d tokens over %d requests", e.SumAbs, e.Compared)
	}
	results, err := os.ReadFile(file("r.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	if s.seen.Len() == 0 {
		t.Error("the journal was never seen")
	}
	for name, b := range map[string][]byte{"stdout": []byte(out), "stderr": []byte(errs), "results": results, "results, decoded": decoded(t, results), "journal": s.seen.Bytes()} {
		if bytes.Contains(b, []byte(canary)) {
			t.Errorf("%s: a reply came out", name)
		}
	}
	var doc struct {
		Run struct{ Thread *result.Threads }
	}
	if err := json.Unmarshal([]byte(out), &doc); err != nil || doc.Run.Thread == nil || doc.Run.Thread.Threaded == 0 {
		t.Errorf("the summary does not tell of threads: %v", err)
	}
}

// sessions makes every n rows of a trace turns of one session that begin with
// each other.
func sessions(t *testing.T, from, to string, n int) {
	t.Helper()
	f, err := trace.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := f.Reader()
	rows := rowsOf(t, r, err)
	for i := range rows {
		if i%n > 0 {
			rows[i].Parents, rows[i].ThinkNS = []int64{int64(i - 1)}, trace.Ptr(int64(0))
		}
	}
	err = trace.Create(to, func(w trace.Writer[trace.Request]) (trace.Meta, error) {
		_, err := w.Write(rows)
		return f.Meta, err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Flags that make no sense together are refused, and a workload without turns.
func TestThreadFlags(t *testing.T) {
	dir := t.TempDir()
	log, workload := filepath.Join(dir, "log.jsonl"), filepath.Join(dir, "w.parquet")
	if err := os.WriteFile(log, []byte(sharingLog(20)), 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, "import", log, "-o", workload)
	for _, args := range [][]string{{"--open-loop"}, {"--concurrency", "2"}, {"--set", "verify"}} {
		if _, errs, code := reprise(t, append([]string{"replay", workload, "-o", "r.parquet", "--thread"}, args...)...); code != cli.Usage {
			t.Errorf("%v: exit code %d: %s", args, code, errs)
		}
	}
	if _, errs, code := reprise(t, "replay", workload, "--url", simulate(t), "-o", "r.parquet", "--thread"); code != cli.Usage || !strings.Contains(errs, "none waits") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
