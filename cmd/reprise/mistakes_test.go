package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"reprise/replay/openai"
)

// faultyServer lists one model and answers 404, except at the given paths.
func faultyServer(answers map[string]http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if f := answers[r.URL.Path]; f != nil {
			f(w, r)
			return
		}
		if r.URL.Path == "/v1/models" {
			_, _ = io.WriteString(w, `{"data":[{"id":"m"}]}`)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		http.NotFound(w, r)
	}
}

// says answers with a status and a body.
func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// What a new user does wrong, and all that the command says to it. None needs the
// documents to be solved.
func TestFirstMistakes(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	t.Setenv("OPENAI_API_KEY", "")
	t.Setenv("HF_HUB_CACHE", "hub")
	must(t, "synth", shortSpec(t), "-o", "w.parquet")
	must(t, "simulate", "w.parquet", "--preset", "l4-qwen2.5-0.5b", "-o", "r.parquet")
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = io.WriteString(z, userLog(3))
	z.Close()
	writeFiles(t, map[string]string{
		"log.jsonl": userLog(3), "few.jsonl": `{"when":"2025-01-01T00:00:00Z","text":"hello world"}`, "moon.jsonl": `{"timestamp":0,"input_length":9,"output_length":2,"hash_ids":[0]}`, "batch.jsonl": `{"custom_id":"r","url":"u","body":{"messages":[]}}`, "empty.jsonl": "", "spaces.jsonl": "\n\n", "bom.jsonl": "\ufeff" + userLog(3), "windows.jsonl": strings.ReplaceAll(userLog(3), "\n", "\r\n"),
		"gz.jsonl": packed.String(), "cutgz.jsonl.gz": packed.String()[:packed.Len()/2], "notgz.jsonl.gz": userLog(3), "cut.jsonl": userLog(3)[:len(userLog(3))-20],
		"html.jsonl": "<!DOCTYPE html><html><body>login</body></html>", "zip.jsonl": "PK\x03\x04xxxxxxxxxxxxxxxxxxxxxxxx",
		"typo.yaml": "rate: 5\nurll: http://x\n", "tab.yaml": "rate:\t5\n\tspeed: 2\n", "keys.yaml": "requests: 3\narrivals: poisson:5\nlenghts: {input: 5, output: 5}\n",
		"c1.yaml": "clauses: [p95 ttft < 1s]\n", "c2.yaml": "clauses: [p95 ttfb <= 1s]\n", "c3.yaml": "clauses: [ttft <= 1s]\n", "c4.yaml": "p95 ttft <= 1s\n", "c5.yaml": "clauses: [p95 ttft <= 500]\n",
	})
	plain := httptest.NewServer(faultyServer(nil))
	defer plain.Close()
	sealed := httptest.NewUnstartedServer(faultyServer(nil))
	sealed.Config.ErrorLog = log.New(io.Discard, "", 0)
	sealed.StartTLS()
	defer sealed.Close()
	counted := func(longest int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			q, err := openai.DecodeRequest(r.Body, 1<<20)
			if err != nil || len(q.Prompt) > longest {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, `{"error":{"message":"maximum context length is 16 tokens"}}`)
				return
			}
			fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"text\":\"a\",\"finish_reason\":\"length\"}],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":4}}\n\ndata: [DONE]\n\n", len(q.Prompt))
		}
	}
	const trusting = " --quiet --trust max-stall-ttft=off,max-stall-gap=off,max-lag=off,max-lag-p50=off,max-lag-drift=off,max-cpu=off"
	for _, c := range []struct {
		line   string
		server http.HandlerFunc
		code   int
		want   string // all of stderr, but for the line about tails and that about --help
	}{
		{line: "replay w.parquet --url URL -o x.parquet" + trusting, server: faultyServer(map[string]http.HandlerFunc{"/v1/completions": counted(1 << 20)}), code: 4, want: "endpoint: for the same text the server counts 456 % more tokens than o200k_base (356 in place of 64), so prompts have other lengths than the workload says: name its tokenizer with --tokenizer, by name or as the path of its tokenizer.json\nreprise: the run is not trustworthy; the report says why\n"},
		{line: "replay w.parquet --url URL -o x.parquet" + trusting, server: faultyServer(map[string]http.HandlerFunc{"/v1/completions": counted(20)}), code: 4, want: "reprise: the run is not trustworthy; the report says why\n"},
		{line: "replay w.parquet --url URL -o x.parquet" + trusting, server: faultyServer(map[string]http.HandlerFunc{"/v1/models": says(200, `{"data":[{"id":"m","max_model_len":16}]}`), "/v1/completions": counted(20)}), code: 1, want: "reprise: the server's context is 16 tokens, and every request needs more, up to 44: it would refuse or cut all of them. Serve a longer context (vLLM: --max-model-len), or send a workload of shorter requests\n"},
		{line: "replay w.parquet --url URL --set template-tokens=3 --tokenizer o200k_base --force-output=false -o x.parquet" + trusting, server: new(uncounted).ServeHTTP, code: 0, want: "endpoint: http://ADDRESS, completions, model m; it sends no usage, so token counts are estimates: output by the tokenizer, prompts as they are made, 3 tokens shorter for the template, as --set template-tokens says\nanswers that were odd: 3 without usage\n"},
		{line: "replay w.parquet --url " + strings.TrimPrefix(plain.URL, "http://") + " -o x.parquet", code: 1, want: "reprise: POST http://ADDRESS/v1/completions: HTTP 404: \"404 page not found\"\nThe server lists its models, but has no completions, chat or responses API below the path of --url.\n"},
		{line: "replay w.parquet --url " + strings.Replace(plain.URL, "http", "https", 1) + " -o x.parquet", code: 1, want: "reprise: GET https://ADDRESS/v1/models: tls: first record does not look like a TLS handshake\nThe server does not speak TLS at this port: write http:// in --url.\n"},
		{line: "replay w.parquet --url " + strings.Replace(sealed.URL, "https", "http", 1) + " -o x.parquet", code: 1, want: "reprise: GET http://ADDRESS/v1/models: HTTP 400: \"Client sent an HTTP request to an HTTPS server.\"\nIf the server speaks TLS at this port, write https:// in --url.\n"},
		{line: "replay w.parquet --url " + sealed.URL + " -o x.parquet", code: 1, want: "reprise: GET https://ADDRESS/v1/models: tls: failed to verify certificate: x509: certificate signed by unknown authority\nIf the certificate is your own, trust its authority with --set tls-ca=FILE, or skip the check with --set tls-insecure.\n"},
		{line: "replay w.parquet --url http://127.0.0.1:1 -o x.parquet", code: 1, want: "reprise: GET http://127.0.0.1:1/v1/models: dial tcp 127.0.0.1:1: connect: connection refused\nCheck that the server runs and that --url names it.\n"},
		{line: "replay w.parquet --set proxy=http://127.0.0.1:1 --url http://10.0.0.1:8000 -o x.parquet", code: 1, want: "reprise: GET http://10.0.0.1:8000/v1/models: proxyconnect tcp: dial tcp 127.0.0.1:1: connect: connection refused\nThe proxy did not answer, and the server was not asked. --set proxy=none goes without it, as do hosts in NO_PROXY.\n"},
		{line: "replay w.parquet --url URL -o x.parquet", server: faultyServer(map[string]http.HandlerFunc{"/v1/models": says(200, "<html>Welcome</html>")}), code: 1, want: "reprise: GET http://ADDRESS/v1/models: the answer is a page of HTML instead of a list of models\nIf the server lists no models, pass --model. Else check the path of --url: models are listed below it.\n"},
		{line: "replay w.parquet --url URL/ui -o x.parquet", server: faultyServer(nil), code: 1, want: "reprise: GET http://ADDRESS/ui/v1/models: HTTP 404: \"404 page not found\"\nIf the server lists no models, pass --model. Else check the path of --url: models are listed below it.\n"},
		{line: "replay w.parquet --url URL -o x.parquet", server: faultyServer(map[string]http.HandlerFunc{"/v1/models": says(404, "<html>nginx</html>")}), code: 1, want: "reprise: GET http://ADDRESS/v1/models: HTTP 404\nIf the server lists no models, pass --model. Else check the path of --url: models are listed below it.\n"},
		{line: "replay w.parquet --url URL -o x.parquet", server: faultyServer(map[string]http.HandlerFunc{"/v1/models": says(200, `{"data":[{"id":"a"},{"id":"b"}]}`)}), code: 1, want: "reprise: GET http://ADDRESS/v1/models: the server has 2 models\nName one with --model: a, b.\n"},
		{line: "replay w.parquet --url URL -o x.parquet", server: faultyServer(map[string]http.HandlerFunc{"/v1/models": says(200, `{"data":[]}`)}), code: 1, want: "reprise: GET http://ADDRESS/v1/models: the server lists no model\nIf the server lists no models, pass --model. Else check the path of --url: models are listed below it.\n"},
		{line: "replay w.parquet --url URL -o x.parquet", server: faultyServer(map[string]http.HandlerFunc{"/v1/completions": says(200, `{"choices":[{"text":"a"}]}`)}), code: 1, want: "reprise: POST http://ADDRESS/v1/completions: a stream of one token failed (not_streamed), though the same request without a stream succeeds\nEvery token is timed as it comes, so the server must send a stream (SSE). Check the path of --url, and whether a gateway switches streams off.\n"},
		{line: "replay w.parquet --url URL -o x.parquet", server: faultyServer(map[string]http.HandlerFunc{"/v1/completions": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://gateway.example/v1/completions?key=SECRET", http.StatusTemporaryRedirect)
		}}), code: 1, want: "reprise: POST http://ADDRESS/v1/completions: HTTP 307: \"it sends clients to https://gateway.example/v1/completions\"\nNo redirect is followed, since each would add a round trip to the time to the first token: write the address that it leads to in --url.\n"},
		{line: "replay w.parquet --url URL -o x.parquet", server: faultyServer(map[string]http.HandlerFunc{"/v1/completions": says(200, "hello\n\n")}), code: 1, want: "reprise: POST http://ADDRESS/v1/completions: the answer (HTTP 200) is text that is not JSON, not one of this API\nEvery token is timed as it comes, so the server must send a stream (SSE). Check the path of --url, and whether a gateway switches streams off.\n"},
		{line: "replay w.parquet --url URL -o x.parquet", server: faultyServer(map[string]http.HandlerFunc{"/v1/completions": says(200, "")}), code: 1, want: "reprise: POST http://ADDRESS/v1/completions: the answer (HTTP 200) is empty, not one of this API\nEvery token is timed as it comes, so the server must send a stream (SSE). Check the path of --url, and whether a gateway switches streams off.\n"},
		{line: "replay w.parquet --url URL -o x.parquet", server: faultyServer(map[string]http.HandlerFunc{"/v1/completions": says(400, `{"error":{"message":"This model's maximum context length is 16 tokens."}}`)}), code: 1, want: "reprise: POST http://ADDRESS/v1/completions: HTTP 400: \"This model's maximum context length is 16 tokens.\"\n"},
		{line: "replay w.parquet --url URL -o x.parquet", server: faultyServer(map[string]http.HandlerFunc{"/v1/completions": says(500, `{"error":{"message":"CUDA out of memory"}}`)}), code: 1, want: "reprise: POST http://ADDRESS/v1/completions: HTTP 500: \"CUDA out of memory\"\nThe server failed at a request of one token: its log says why.\n"},
		{line: "import log.jsonl --format openai -o x.parquet", code: 2, want: "reprise: unknown format \"openai\"; did you mean openai-batch, openai-log? (the formats are listed by reprise import --help-all, and without --format it is detected)\n"},
		{line: "import few.jsonl --map time=wen -o x.parquet", code: 1, want: "reprise: few.jsonl:1:1: no record has the field \"wen\" (--map time=wen); did you mean \"when\"?\nFields of its one record:\n  when  always  date, 2025-01-01 00:00\n  text  always  text, 11 characters\nTo import it:\n  reprise import few.jsonl --map time=when --map prompt=text -o x.parquet\n"},
		{line: "import few.jsonl --map time=when -o x.parquet", code: 2, want: "reprise: --map needs the prompt or its length: one of messages, prompt and input_tokens\n"},
		{line: "capacity r.parquet --target-rate 5", code: 2, want: "reprise: r.parquet is no sweep: name the folder or sweep.json that reprise sweep -o DIR wrote\n"},
		{line: "synth w.parquet --shared-above 1h -o x.parquet", code: 2, want: "reprise: --shared-above needs a duration above 0 and --users 2 or more: it makes the rate of several copies of the users one course\n"},
		{line: "synth w.parquet --users 2 --shared-above 0s -o x.parquet", code: 2, want: "reprise: --shared-above needs a duration above 0 and --users 2 or more: it makes the rate of several copies of the users one course\n"},
		{line: "replay http://127.0.0.1:1 w.parquet", code: 2, want: "reprise: too many arguments: leave out " +
			"\"w.parquet\": reprise replay WORKLOAD [--url URL]\n"},
		{line: "replay w.parquet --url URL -o -", server: faultyServer(nil), code: 2, want: "reprise: results are no text: name a file for them, -o FILE.parquet\n"},
		{line: "replay w.parquet r.parquet", code: 2, want: "reprise: too many arguments: leave out " +
			"\"r.parquet\": reprise replay WORKLOAD [--url URL]\n"},
		{line: "replay w.parquet -o", code: 2, want: "reprise: --output needs a value: --output FILE\n"},
		{line: "replay w.parquet --rate -5 -o x.parquet", code: 2, want: "reprise: --rate: \"-5\" is not a rate or an arrival process: write 5, 300/min or gamma:5,cv=2\n"},
		{line: "replay w.parquet --rate 0 -o x.parquet", code: 2, want: "reprise: --rate: \"0\" is not a rate or an arrival process: write 5, 300/min or gamma:5,cv=2\n"},
		{line: "replay w.parquet --rate 5% -o x.parquet", code: 2, want: "reprise: --rate: \"5%\" is not a rate or an arrival process: write 5, 300/min or gamma:5,cv=2\n"},
		{line: "replay w.parquet --speed 0 -o x.parquet", code: 2, want: "reprise: --speed: \"0\" is not a factor above 0: write 2, 2x or 0.5\n"},
		{line: "sweep w.parquet --duration 10s", code: 2, want: "reprise: there is no --duration here: " +
			"a level is measured for --level-duration, such as 30s\n"},
		{line: "replay w.parquet --ulr http://127.0.0.1:1", code: 2, want: "reprise: unknown flag: --ulr: did you mean --url?\n"},
		{line: "replay w.parquet --no-ignore-eos", code: 2,
			want: "reprise: there is no --no-ignore-eos here: --ignore-eos=false lets the model end its answers\n"},
		{line: "serve --port 8000", code: 2,
			want: "reprise: unknown flag: --port: the address has the port: --listen 127.0.0.1:8000\n"},
		{line: "replay w.parquet --concurrency 4 --rate 5 --dry-run", code: 2, want: "reprise: --concurrency and --rate are two loads: give one of them. For a rate with at most 4 in flight: --rate poisson:5 --max-in-flight 4\n"},
		{line: "replay w.parquet --start 1h --dry-run", code: 2, want: "window: 0 of 3 rows, from 1h0m0s on\nreprise: the selection has none of the workload's 3 rows: reprise profile w.parquet prints its length\n"},
		{line: "replay w.parquet --start 5s --end 1s --dry-run", code: 2, want: "reprise: the window from 5s to 1s is empty\n"},
		{line: "replay w.parquet --sample 50 --dry-run", code: 2, want: "reprise: --sample: want a share above 0, up to 1, such as 0.1 or 10%\n"},
		{line: "replay w.parquet --tokenizer gpt4 --dry-run", code: 2, want: "reprise: unknown tokenizer \"gpt4\": want one of cl100k_base, o200k_base, p50k_base, r50k_base, or the path of a tokenizer.json or of the folder with it\n"},
		{line: "replay w.parquet --tokenizer ./none.json --dry-run", code: 2,
			want: "reprise: tokenizer: there is no file or folder ./none.json\n"},
		{line: "replay w.parquet --rate 5 -o x.csv", code: 2,
			want: "reprise: -o x.csv: Parquet is written there: name it x.parquet. reprise export makes CSV and other " +
				"formats of it\n"},
		{line: "compare --a http://127.0.0.1:1 --b http://127.0.0.1:2", code: 2,
			want: "reprise: --a and --b name results: a server goes to --url-a or --url-b\n"},
		{line: "bench --concurrency 10", code: 2, want: "reprise: there is no --concurrency here: one load is sent by " +
			"reprise replay, such as reprise replay --input-tokens 550 --output-tokens 150 --concurrency 10 --requests " +
			"100 --url URL\n"},
		{line: "replay w.parquet --streaming --rate 5", code: 2,
			want: "reprise: there is no --streaming here: answers are always streamed: leave it out\n"},
		{line: "replay w.parquet --tokenizer meta-llama/Llama-3-8B --dry-run", code: 2, want: "reprise: --tokenizer: meta-llama/Llama-3-8B is no file, and no model in Hugging Face's cache, hub: name the path of its tokenizer.json\n"},
		{line: "replay w.parquet '--url http://x' --dry-run", code: 2, want: "reprise: \"--url http://x\" is one word, with its quotes: write --url http://x\n"},
		{line: "replay w.parquet --extra-body {temperature:0} --url http://127.0.0.1:1 -o x.parquet", code: 2, want: "reprise: --extra-body: extra request fields: not valid JSON at byte 2: write an object in quotes, such as '{\"temperature\":0}'\n"},
		{line: "replay w.parquet --config typo.yaml --dry-run", code: 2, want: "reprise: typo.yaml:2:1: unknown key \"urll\": did you mean url?\n"},
		{line: "replay w.parquet --config tab.yaml --dry-run", code: 2, want: "reprise: tab.yaml:2:1: a tab: indent with spaces\n"},
		{line: "replay w.parquet --config no.yaml --dry-run", code: 2, want: "reprise: a run file that was asked for does not exist: no.yaml\n"},
		{line: "replay w.parquet --cache clod --dry-run", code: 2, want: "reprise: --cache: want one of salted, cold, warm, as-is\n"},
		{line: "replay w.parquet --connections pool --dry-run", code: 2, want: "reprise: client: connections are auto, per-request, pooled, pooled:N with N connections opened before the start, at most 65536, or per-session\n"},
		{line: "replay w.parquet --slo ttft:500 --dry-run", code: 2, want: "reprise: --slo: objective 1 of the SLO: write the duration with its unit, such as 200ms or 5s\n"},
		{line: "report r.parquet --slo ttft:500", code: 2, want: "reprise: --slo: objective 1 of the SLO: write the duration with its unit, such as 200ms or 5s\n"},
		{line: "report r.parquet --slo ttft=500ms", code: 2, want: "reprise: --slo: objective 1 of the SLO: write it as name:duration, such as ttft:200ms\n"},
		{line: "report r.parquet --slo p99_ttft:500ms", code: 2, want: "reprise: --slo: objective 1 of the SLO: a request has no p99: give --clause 'p99 ttft <= 500ms' to sweep, or that clause in the file of --contract\n"},
		{line: "compare http://a:8000 http://b:8000 -o c", code: 2, want: "reprise: http://a:8000 is a server: compare two with reprise compare WORKLOAD --url-a URL --url-b URL -o DIRECTORY\n"},
		{line: "report r.parquet --slo ttfb:500ms", code: 2, want: "reprise: --slo: objective 1 of the SLO: the metric is not one of ttft, tpot, itl, e2e\n"},
		{line: "report r.parquet --format yaml", code: 2, want: "reprise: --format: want one of text, json, " +
			"markdown, csv, junit, prometheus, benchmark-report, vllm, decision\n"},
		{line: "report r.parquet --contract c1.yaml", code: 2, want: "reprise: c1.yaml:1:20: want <= after p95 ttft\n"},
		{line: "report r.parquet --contract c2.yaml", code: 2, want: "reprise: c2.yaml:1:15: no such metric; nearest is ttft: want a percentile, mean or max of ttft, ttfo, tpot, itl, itl_token, e2e, headers, session_time, session_slowdown, queue_time, prefill_time, such as p95_ttft; or one of requests_per_s, prompt_tokens_per_s, output_tokens_per_s, error_rate, goodput, hit_ratio, cost_per_million_output_tokens, session_success, sessions_per_s, cost_per_session, max_waiting\n"},
		{line: "report r.parquet --contract c3.yaml", code: 2, want: "reprise: c3.yaml:1:11: say which ttft: a percentile such as p95_ttft, mean or max before it\n"},
		{line: "report r.parquet --contract c4.yaml", code: 2, want: "reprise: c4.yaml:1:1: want keys and values, such as name:\n"},
		{line: "report r.parquet --trust max-lag", code: 2, want: "reprise: --trust: want KEY=LIMIT, such as max-lag=100ms, separated by commas\n"},
		{line: "report", code: 2, want: "reprise: which results? reprise report RESULTS...\n"},
		{line: "compare r.parquet", code: 2, want: "reprise: a comparison needs at least two results; with --production TRACE, one\n"},
		{line: "compare r.parquet w.parquet", code: 1, want: "reprise: w.parquet holds a trace or a workload, not the results of a run: reprise profile w.parquet describes it, reprise replay w.parquet sends it\n"},
		{line: "synth keys.yaml -o k.parquet", code: 1, want: "reprise: keys.yaml:3:1: unknown field \"lenghts\": did you mean lengths?\n"},
		{line: "synth cat -o k.parquet", code: 1, want: "reprise: there is neither a file cat nor a built-in workload of that name; there are agents, baseline, chat, chunked_prefill, code_generation, cold_warm, concurrency_sweep, continuous_batching, long_context_qa, matrix-a, matrix-b, matrix-c, matrix-d, matrix-e, paged_attention, prefix_caching, summarization\n"},
		{line: "synth r.parquet -o k.parquet", code: 1, want: "reprise: r.parquet holds the results of a run, not a trace or a workload: reprise report r.parquet reads them\n"},
		{line: "synth log.jsonl -o k.parquet", code: 1, want: "reprise: log.jsonl is not a trace or a workload: reprise import log.jsonl -o t.parquet makes a trace of a log\n"},
		{line: "import batch.jsonl moon.jsonl --seed 2 -o t2.parquet", code: 2, want: "reprise: the files are of several formats: 1 of openai-batch, such as batch.jsonl; 1 of mooncake, such as moon.jsonl. Import each format by itself:\n  reprise import batch.jsonl moon.jsonl --seed 2 --format openai-batch \\\n    -o t2-openai-batch.parquet\n  reprise import batch.jsonl moon.jsonl --seed 2 --format mooncake \\\n    -o t2-mooncake.parquet\n"},
		{line: "import empty.jsonl -o t.parquet", code: 1, want: "reprise: empty.jsonl:1:1: the input is empty\n"},
		{line: "import spaces.jsonl -o t.parquet", code: 1, want: "reprise: spaces.jsonl:1:1: the input is empty\n"},
		{line: "import windows.jsonl -o t2.parquet", code: 1, want: "reprise: windows.jsonl:1:1: unrecognised format\nFields of all 3 records:\n  ts                       always  date, 2026-05-01 12:00\n  user                     always  text, 2 characters\n  usage.completion_tokens  always  whole number, 3\n  usage.prompt_tokens      always  whole number, 12 to 14\nAll 3 requests, 2026-05-01 12:00:00 to 2026-05-01 12:00:02 UTC:\n  39 input tokens by usage\n  9 output tokens\nTo import it:\n  reprise import windows.jsonl --map time=ts \\\n    --map input_tokens=usage.prompt_tokens \\\n    --map output_tokens=usage.completion_tokens --map user=user -o t2.parquet\n"},
		{line: "import cutgz.jsonl.gz -o t.parquet", code: 1, want: "reprise: cutgz.jsonl.gz:1:1: gzip: unexpected end of file: it is cut off\n"},
		{line: "import cut.jsonl -o t.parquet", code: 1, want: "reprise: cut.jsonl:1:1: unrecognised format\nFields of the first 2 records:\n  ts                       always  date, 2026-05-01 12:00\n  user                     always  text, 2 characters\n  usage.completion_tokens  always  whole number, 3\n  usage.prompt_tokens      always  whole number, 12 to 13\nAll 2 requests, 2026-05-01 12:00:00 to 2026-05-01 12:00:01 UTC:\n  25 input tokens by usage\n  6 output tokens\ncut.jsonl:3:74: unexpected end of file: the last record is not whole\nImport stops there: take that record out first\nTo import it:\n  reprise import cut.jsonl --map time=ts \\\n    --map input_tokens=usage.prompt_tokens \\\n    --map output_tokens=usage.completion_tokens --map user=user -o t.parquet\n"},
		{line: "import html.jsonl -o t.parquet", code: 1, want: "reprise: html.jsonl:1:1: a web page: such as of " +
			"a login: fetch the log itself\n"},
		{line: "import zip.jsonl -o t.parquet", code: 1, want: "reprise: zip.jsonl:1:1: zip: archives of this kind are not read: unpack it first\n"},
		{line: "import w.parquet -o t.parquet", code: 1, want: "reprise: w.parquet holds a trace or a workload, not a log: reprise profile w.parquet describes it, reprise replay w.parquet sends it\n"},
		{line: "import r.parquet -o t.parquet", code: 1, want: "reprise: r.parquet holds the results of a run, not a log: reprise report r.parquet reads them\n"},
		{line: "import log.jsonl -o t.parquet --tz Berlin", code: 2, want: "reprise: --tz: \"Berlin\" is no time zone: write its name, such as Europe/Berlin, America/New_York or UTC\n"},
		{line: "bench servign --preset l4-qwen2.5-0.5b", code: 2, want: "reprise: there is no suite servign: name a YAML file, or one of concurrency-sweep, load-test, matrix, offline, server, serving, single-stream, soak\n"},
		{line: "simulate w.parquet --preset h100 -o y.parquet", code: 2, want: "reprise: --preset: unknown preset: want one of l4-qwen2.5-0.5b, t4-llama-3.2-3b, rtx5080-llama-3.2-3b, rtx5080-llama-3.2-3b-paged, document-h100-llama-70b, roofline-8xh100-llama-70b; or the engine.yaml of reprise calibrate\n"},
		{line: "simulate w.parquet --preset h100-llama-70b -o y.parquet", code: 2, want: "reprise: --preset: " +
			"h100-llama-70b is now called document-h100-llama-70b: its figures are a document's, 6.9 times slower " +
			"than 8 × H100 can be. The bound of that hardware is roofline-8xh100-llama-70b\n"},
		{line: "simulate w.parquet -o y.parquet", code: 2, want: "reprise: no engine given: --preset l4-qwen2.5-0.5b, or --costs step=5ms,kv-token=40ns,prefill-token=25us\n"},
		{line: "sweep chat --preset l4-qwen2.5-0.5b --rates 5,2", code: 2, want: "reprise: loads must be in ascending order, since the sweep stops at saturation\n"},
		{line: "export w.parquet -o y.json", code: 2, want: "reprise: no format given: --to takes one of mooncake, bailian, aiperf, vllm-custom, vllm-timed-trace, sglang, guidellm, inference-perf, openai-batch, blis, hf\n"},
		{line: "export w.parquet --to csvv -o y.json", code: 2, want: "reprise: --to: there is no format \"csvv\": want one of mooncake, bailian, aiperf, vllm-custom, vllm-timed-trace, sglang, guidellm, inference-perf, openai-batch, blis, hf\n"},
		{line: "serve --listen 127.0.0.1:99999", code: 2, want: "reprise: --listen: listen tcp: address 99999: invalid port: write an address and a port, such as 127.0.0.1:8000\n"},
	} {
		line := c.line
		if c.server != nil {
			s := httptest.NewServer(c.server)
			defer s.Close()
			line = strings.ReplaceAll(line, "URL", s.URL)
		}
		args := regexp.MustCompile(`'[^']*'|\S+`).FindAllString(line, -1)
		for i := range args {
			args[i] = strings.Trim(args[i], "'")
		}
		_, errs, code := reprise(t, args...)
		errs = regexp.MustCompile(`(?m)^(tails|cache: prompts no earlier run has sent).*\n`).ReplaceAllString(errs, "")
		errs = regexp.MustCompile(`127.0.0.1:[0-9]{5}`).ReplaceAllString(errs, "ADDRESS")
		if errs != c.want || code != c.code {
			t.Errorf("%s: exit code %d\n%s\nwant %d\n%s", c.line, code, errs, c.code, c.want)
		}
		os.Remove("x.parquet")
	}
}

func shortSpec(t *testing.T) string {
	writeFiles(t, map[string]string{"spec.yaml": "requests: 3\narrivals: poisson:100\nlengths: {input: 40, output: 4}\n"})
	return "spec.yaml"
}
