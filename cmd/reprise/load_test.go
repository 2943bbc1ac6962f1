package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/engine"
	"reprise/trace/longtest"
	"reprise/trace/token"
)

// A wireBody is what a test looks at of a request.
type wireBody struct {
	Prompt   string
	Messages []struct {
		Role    string
		Content json.RawMessage
	}
	MaxTokens int `json:"max_tokens"`

	MaxCompletion int  `json:"max_completion_tokens"`
	IgnoreEOS     bool `json:"ignore_eos"`
	Stream        bool

	path     string
	at       time.Time
	inFlight int
}

// text is the prompt, or the last message.
func (b wireBody) text() string {
	if len(b.Messages) == 0 {
		return b.Prompt
	}
	content := b.Messages[len(b.Messages)-1].Content
	var text string
	var parts []struct{ Text string }
	if json.Unmarshal(content, &text) != nil && json.Unmarshal(content, &parts) == nil && len(parts) == 1 {
		text = parts[0].Text
	}
	return text
}

// wire is a simulated endpoint that keeps the bodies of the requests it gets.
func wire(t *testing.T) (url string, sent func() []wireBody) {
	t.Helper()
	c := engine.DefaultServerConfig()
	c.Engine.Costs = engine.Costs{} // answers come at once
	return wireOf(t, c)
}

func wireOf(t *testing.T, c engine.ServerConfig) (url string, sent func() []wireBody) {
	t.Helper()
	s, err := engine.NewServer(c)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var all []wireBody
	inFlight := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		var body wireBody
		if json.Unmarshal(text, &body) == nil && strings.HasSuffix(r.URL.Path, "completions") {
			mu.Lock()
			inFlight++
			body.path, body.at, body.inFlight = r.URL.Path, time.Now(), inFlight
			all = append(all, body)
			mu.Unlock()
			defer func() {
				mu.Lock()
				inFlight--
				mu.Unlock()
			}()
		}
		r.Body = io.NopCloser(strings.NewReader(string(text)))
		s.Handler().ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL, func() []wireBody {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

// wired sends a load to a wire, and returns the requests of it: the last so many bodies.
func wired(t *testing.T, line string) []wireBody {
	t.Helper()
	url, sent := wire(t)
	return wiredTo(t, line, url, sent)
}

func wiredTo(t *testing.T, line, url string, sent func() []wireBody) []wireBody {
	t.Helper()
	out, errs, code := reprise(t, append(strings.Fields("replay "+line), "--url", url, "-o", "r.parquet", "--overwrite",
		"--json")...)
	var report struct {
		Requests struct{ Rows int } `json:"requests"`
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != cli.Good && code != cli.Untrusted {
		t.Fatalf("%s: exit code %d, %v\n%s", line, code, err, errs)
	}
	bodies := sent()
	return bodies[len(bodies)-report.Requests.Rows:]
}

// Without a file, the flags say how many requests there are, how long they are, and what they share.
func TestLoadWithoutAFile(t *testing.T) {
	t.Chdir(t.TempDir())
	tok, err := token.Open("o200k_base")
	if err != nil {
		t.Fatal(err)
	}
	tokens := func(text string) int { return len(tok.Append(nil, text)) }
	for line, n := range map[string]int{
		"--input-tokens 55 --output-tokens 7 --concurrency 4 --requests 20":                           20,
		"--isl 55 --osl 7 --rate 200 --num-prompts 12":                                                12,
		"--random-input-len 55 --random-output-len 7 --max-concurrency 3 --num-prompts 9":             9,
		"--input-tokens 55 --output-tokens 7 --concurrency 2 --duration 1s":                           -1,
		"--input-tokens 55 --output-tokens 7 --shared-prefix 99 --concurrency 4 --requests 12":        12,
		"--input-tokens 55±5 --output-tokens uniform:7-7 --concurrency 4 --requests 20":               20,
		"--input-tokens 55 --output-tokens 7 --turns 3 --sessions 2 --requests 6":                     6,
		"--input-tokens 55 --output-tokens 7 --shared-prefix 99 --prefixes 3 --rate 99 --requests 30": 30,
	} {
		bodies := wired(t, line)
		if n >= 0 && len(bodies) != n || n < 0 && len(bodies) < 4 {
			t.Errorf("%s: %d requests", line, len(bodies))
		}
		prefixes, turns := map[string]int{}, 0
		for i, b := range bodies {
			got, want := tokens(b.Prompt), 55
			switch {
			case strings.Contains(line, "--shared-prefix"):
				want += 99
				prefixes[strings.Join(strings.Fields(b.Prompt)[:20], " ")]++
			case strings.Contains(line, "--turns"):
				for _, earlier := range bodies[:i] {
					if strings.HasPrefix(b.Prompt, earlier.Prompt) {
						turns++
						want = got
					}
				}
			case strings.Contains(line, "±"):
				if want = got; got < 30 || got > 80 {
					want = 55
				}
			}
			if got != want || b.MaxTokens != 7 {
				t.Errorf("%s: a prompt of %d tokens, and %d asked for", line, got, b.MaxTokens)
			}
		}
		if want := map[bool]int{true: 3, false: 1}[strings.Contains(line, "--prefixes")]; strings.Contains(line, "--shared") && len(prefixes) != want {
			t.Errorf("%s: %d prefixes, want %d", line, len(prefixes), want)
		}
		if strings.Contains(line, "--turns") && turns == 0 {
			t.Errorf("%s: no turn holds the one before it", line)
		}
	}
}

// What is named by a command line is sent: a built-in workload, a specification, a file of prompts.
func TestLoadByName(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFiles(t, map[string]string{
		"own.yaml":     "requests: 8\narrivals: poisson:50\nlengths: {input: 40, output: 5}\n",
		"vllm.jsonl":   `{"prompt":"one two","output_tokens":4}` + "\n" + `{"prompt":"three","output_tokens":5}` + "\n",
		"bare.jsonl":   `{"prompt":"one two"}` + "\n" + `{"prompt":"three"}` + "\n",
		"openai.jsonl": `{"messages":[{"role":"user","content":"one two"}],"max_tokens":4}` + "\n" + `{"messages":[{"role":"user","content":"three"}],"max_tokens":3}` + "\n",
		"guide.jsonl":  `{"prompt":"one two","output_tokens_count":4}` + "\n" + `{"prompt":"three","output_tokens_count":4}` + "\n",
		"aiperf.jsonl": `{"text":"one two"}` + "\n" + `{"text":"three"}` + "\n",
		"share.json": `[{"id":"a","conversations":[{"from":"human","value":"one two"},{"from":"gpt","value":"good day"},` +
			`{"from":"human","value":"three"},{"from":"gpt","value":"again"}]}]`,
	})
	if n := len(wired(t, "own.yaml --rate 200")); n != 8 {
		t.Errorf("a specification of 8 requests: %d", n)
	}
	if n := len(wired(t, "chat --rate 200 --requests 5 --speed 1")); n != 5 {
		t.Errorf("5 requests of a built-in workload: %d", n)
	}
	files := []string{"openai.jsonl", "share.json"}
	if longtest.On() {
		files = append(files, "vllm.jsonl", "bare.jsonl", "guide.jsonl", "aiperf.jsonl",
			"share.json --as-sessions --speed 100")
	}
	for _, file := range files {
		var texts []string
		for _, b := range wired(t, file+" --rate constant:50") {
			texts = append(texts, b.text())
		}
		if slices.Sort(texts); !slices.Equal(texts, []string{"one two", "three"}) {
			t.Errorf("%s: the prompts %q were sent", file, texts)
		}
	}
	// The length of the file bounds an answer, else 1,024 tokens, also where all of it goes to the chat API.
	for file, want := range map[string][]int{"vllm.jsonl": {4, 5}, "bare.jsonl": {1024, 1024}, "openai.jsonl": {3, 4}, "guide.jsonl": {4, 4}} {
		var bounds []int
		for _, b := range wired(t, file+" --rate constant:50 --api chat") {
			bounds = append(bounds, b.MaxTokens)
			if len(b.Messages) == 0 || b.Messages[0].Role != "user" {
				t.Errorf("%s: no message of a user: %+v", file, b)
			}
		}
		if slices.Sort(bounds); !slices.Equal(bounds, want) {
			t.Errorf("%s: bounds of %v tokens, want %v", file, bounds, want)
		}
	}
	// A flag that was typed wins over the bounds and the lengths of the file.
	writeFiles(t, map[string]string{"bounds.jsonl": `{"messages":[{"role":"user","content":"one"}],"max_tokens":2000}` +
		"\n" + `{"messages":[{"role":"user","content":"two"}],"max_completion_tokens":9,"top_p":0.5}` + "\n" +
		`{"messages":[{"role":"user","content":"three"}],"top_p":0.5}` + "\n"})
	for line, want := range map[string][]int{
		"bounds.jsonl": {9, 1024, 2000}, "bounds.jsonl --output-tokens 6": {6, 6, 6},
		"bounds.jsonl --output-tokens server:50":             {50, 50, 50},
		"bounds.jsonl --output-tokens 6 --force-output=true": {6, 6, 6}, "vllm.jsonl --output-tokens 6": {6, 6},
	} {
		var bounds []int
		for _, b := range wired(t, line+" --rate constant:50") {
			bounds = append(bounds, max(b.MaxTokens, b.MaxCompletion))
		}
		if slices.Sort(bounds); !slices.Equal(bounds, want) {
			t.Errorf("%s: bounds of %v tokens, want %v", line, bounds, want)
		}
	}
	left, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range left {
		if strings.Contains(f.Name(), "privacy") || strings.Contains(f.Name(), ".raw.") {
			t.Errorf("%s is left behind", f.Name())
		}
	}
}

// A load that lacks something is refused with what to type, before anything is sent.
func TestLoadMistakes(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFiles(t, map[string]string{
		"bare.jsonl":     `{"prompt":"one two"}` + "\n",
		"mooncake.jsonl": `{"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [1, 2]}` + "\n",
		"odd.jsonl":      `{"colour":"red"}` + "\n",
	})
	for line, want := range map[string]string{
		"":                                   "which workload?",
		"chatt":                              "there is neither a file chatt nor a built-in workload of that name",
		"--input-tokens 5":                   "--output-tokens 150",
		"--input-tokens 5 --output-tokens 5": "--rate 4 (per second) or --concurrency 10",
		"--input-tokens much --output-tokens 5 --rate 1":               "--input-tokens: \"much\" is not a length",
		"--input-tokens 5 --output-tokens 5 --rate 1 --prefixes 3":     "--prefixes needs --shared-prefix",
		"--input-tokens 5 --output-tokens 5 --concurrency 1 --turns 3": "--sessions 10 keeps",
		"chat --input-tokens 5 --output-tokens 5 --rate 1":             "chat and --input-tokens are two workloads",
		"chat --turns 3":                  "--input-tokens 550",
		"bare.jsonl --rate 4 --turns 1":   "no conversations",
		"bare.jsonl --rate 4 --turns 1±2": "how many first turns",
		"bare.jsonl":                      "bare.jsonl has no times: say how fast",
		"mooncake.jsonl --rate 4":         "mooncake.jsonl has no text to send, only lengths",
		"odd.jsonl --rate 4":              "odd.jsonl",
	} {
		_, errs, code := reprise(t, append(strings.Fields("replay "+line), "--url", "http://127.0.0.1:1", "-o", "r.parquet")...)
		if code == cli.Good || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d, want %q\n%s", line, code, want, errs)
		}
	}
}

// What the documentation gives in place of other tools' command lines runs, with the lengths and the number of
// requests that it says.
func TestFromOtherTools(t *testing.T) {
	doc, err := os.ReadFile("../../docs/from-other-tools.md")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := os.Rename(conversations(t, 400), "F"); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, cell := range regexp.MustCompile("\\| `(reprise replay (?:F|--)[^`]*)`").FindAllStringSubmatch(string(doc), -1) {
		n++
		line := strings.Replace(strings.TrimPrefix(cell[1], "reprise "), "--url U", "--url http://h", 1)
		out, errs, code := reprise(t, append(strings.Fields(line), "--dry-run", "--json", "--set", "assume=ttft=1s,itl=10ms")...)
		var plan struct {
			Input  float64 `json:"input_tokens"`
			Output float64 `json:"output_tokens"`
			Plan   struct{ Requests float64 }
		}
		if err := json.Unmarshal([]byte(out), &plan); err != nil || code != cli.Good {
			t.Errorf("%s: exit code %d, %v\n%s", line, code, err, errs)
			continue
		}
		requests := plan.Plan.Requests
		if strings.Contains(line, "--requests 200") && requests != 200 {
			t.Errorf("%s: %v requests", line, requests)
		}
		in, answers := plan.Input/requests, plan.Output/requests
		if made := !strings.Contains(line, " F "); made && (math.Abs(in-550) > 30 || math.Abs(answers-150) > 3) {
			t.Errorf("%s: %.1f tokens in and %.1f out", line, in, answers)
		}
	}
	if n < 7 {
		t.Errorf("%d command lines were found", n)
	}
}

// With --turns a file of conversations gives the first turns of each, in its order, to a replay and a simulation.
func TestFirstTurns(t *testing.T) {
	file := conversations(t, 40)
	t.Chdir(t.TempDir())
	messages := func(line string) (counts []int) {
		for _, body := range wired(t, file+" --concurrency 1 --output-tokens 3 "+line) {
			counts = append(counts, len(body.Messages))
		}
		return counts
	}
	all := messages("")
	for turns := range 3 { // 2 messages before the first answer, with the system's, and 2 more before each other
		want := slices.DeleteFunc(slices.Clone(all), func(n int) bool { return n > 2*turns+2 })
		got := messages(fmt.Sprint("--turns ", turns+1))
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%d turns: requests of %v messages, want %v", turns+1, got, want)
		}
	}
	if got := messages("--turns 1 --requests 9"); !slices.Equal(got, slices.Repeat([]int{2}, 9)) {
		t.Errorf("nine first turns: requests of %v messages", got)
	}
	must(t, "import", file, "--arrivals", "poisson:9", "-o", "w.parquet", "--quiet")
	_, errs, code := reprise(t, strings.Fields("simulate w.parquet --turns 1 --preset l4-qwen2.5-0.5b -o r.parquet")...)
	if code != cli.Good || !strings.Contains(errs, "turns: 40 of") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
	if out := must(t, "report", "r.parquet", "--details"); !strings.Contains(out, "up to turn 1 of each conversation") {
		t.Errorf("the report does not say it:\n%s", out)
	}
}

// Results without a name never take that of others.
func TestResultsHaveAFreeName(t *testing.T) {
	t.Chdir(t.TempDir())
	begin := time.Date(2026, 11, 29, 17, 30, 0, 0, time.UTC)
	for _, want := range []string{"replay-20261129-173000.parquet", "replay-20261129-173000-2.parquet", "replay-20261129-173000-3.parquet"} {
		if got := freeName(begin); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		writeFiles(t, map[string]string{want: ""})
	}
}

// A replay of a file of prompts that is killed once it sends leaves no text of them behind.
func TestKilledPromptsLeaveNoText(t *testing.T) {
	long(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "prompts.jsonl")
	if err := os.WriteFile(file, []byte(strings.Repeat(`{"prompt":"one two three"}`+"\n", 500)), 0o600); err != nil {
		t.Fatal(err)
	}
	url, sent := wire(t)
	spill := t.TempDir()
	cmd := child(t, "replay", file, "--rate", "20", "--url", url, "-o", filepath.Join(dir, "r.parquet"), "--quiet")
	cmd.Env = append(cmd.Env, "TMPDIR="+spill)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for len(sent()) < 10 {
		time.Sleep(10 * time.Millisecond)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the run was over before it was killed")
	}
	left, err := os.ReadDir(spill)
	if err != nil || len(left) > 0 {
		t.Errorf("%v: it left %v", err, left)
	}
}

// conversations are a file of prompts as ShareGPT has them: chats of up to three turns, on two system prompts.
func conversations(t *testing.T, chats int) string {
	t.Helper()
	words := strings.Fields(prose())
	type message struct {
		From  string `json:"from"`
		Value string `json:"value"`
	}
	type chat struct {
		ID            string    `json:"id"`
		Conversations []message `json:"conversations"`
	}
	var all []chat
	draw := rand.New(rand.NewPCG(1, uint64(chats)))
	text := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteString(words[draw.IntN(len(words))] + " ")
		}
		return b.String()
	}
	systems := []string{text(40), text(90)}
	for i := range chats {
		c := chat{ID: fmt.Sprint("chat-", i), Conversations: []message{{"system", systems[i%2]}}}
		for range 1 + draw.IntN(3) {
			c.Conversations = append(c.Conversations, message{"human", text(5 + draw.IntN(150))},
				message{"gpt", text(5 + draw.IntN(50))})
		}
		all = append(all, c)
	}
	content, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "chats.json")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Prompts of a file have no salt, so that a second run finds them in the server's cache: that is not to be trusted,
// whatever the server's blocks, and an emptied cache is.
func TestWarmCacheOfPrompts(t *testing.T) {
	t.Parallel()
	file := conversations(t, 12)
	for _, block := range []int{1, 16, 64} {
		c := engine.DefaultServerConfig()
		c.Engine.Costs, c.Engine.BlockSize = engine.Costs{}, block
		s, err := engine.NewServer(c)
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(s.Handler())
		defer server.Close()

		line := fmt.Sprintf("replay %s --concurrency 2 --url %s --overwrite --json -o %s", file, server.URL,
			filepath.Join(t.TempDir(), "r.parquet"))
		for _, run := range []struct {
			flags string
			warm  bool
		}{{"", false}, {"", true}, {" --cache cold", false}, {" --cache as-is", false}} {
			out, errs, _ := reprise(t, strings.Fields(line+run.flags)...)
			var report struct {
				Verdict struct {
					Checks []struct {
						Code     string
						Measured *float64
						Holds    bool
					}
				}
			}
			if err := json.Unmarshal([]byte(out), &report); err != nil {
				t.Fatalf("%v\n%s", err, errs)
			}
			judged := strings.Contains(run.flags, "as-is") // which accepts what is there
			for _, check := range report.Verdict.Checks {
				if check.Code == "extra_cache_hits" && check.Measured != nil {
					judged = !judged && check.Holds != run.warm
				}
			}
			if !judged {
				t.Errorf("blocks of %d, a warm cache %t: %+v\n%s", block, run.warm, report.Verdict.Checks, errs)
			}
		}
	}
}

// The first prompts of a large file are those of the whole, and a length that is asked for goes before the file's.
func TestFirstPromptsOfAFile(t *testing.T) {
	file := conversations(t, 40)
	t.Chdir(t.TempDir())
	texts := func(line string) (texts []string) {
		for _, body := range wired(t, file+" --concurrency 1 --output-tokens 7 "+line) {
			if body.MaxTokens != 7 {
				t.Errorf("%s: an answer of %d tokens is asked for", line, body.MaxTokens)
			}
			texts = append(texts, body.text())
		}
		return texts
	}
	whole, first := texts(""), texts("--max-requests 12")
	if len(first) != 12 || len(whole) < 40 || !slices.Equal(first, whole[:12]) {
		t.Errorf("%d prompts of %d are not the first of them", len(first), len(whole))
	}
}
