package datasets

import (
	"strings"
	"testing"

	"reprise/datasets/internal/record"
)

// Logs of servers that hold no requests are named, with what makes the server log them.
func TestLogsWithoutRequests(t *testing.T) {
	for in, want := range map[string]string{
		"nohup: ignoring input\nWARNING 01-02 03:04:00 [argparse_utils.py:257] With `vllm serve`, give the model\n":                                 "(vLLM), which holds no requests: start it with --enable-log-requests",
		"\x1b[36m(EngineCore_DP0 pid=7)\x1b[0m INFO 01-02 03:04:05 [kv_cache_utils.py:1] GPU KV cache size: 1 tokens\n":                             "(vLLM)",
		"START\n[2026-01-02 03:04:46] Prefill batch, #new-seq: 1, #new-token: 7\n":                                                                  "(SGLang), which holds no requests: start it with --log-requests",
		"slot launch_slot_: id  3 | task 0 | processing task\nprompt eval time =    2957.35 ms /   139 tokens\n":                                    "(llama-server), which holds no requests: put reprise record",
		"time=2026-01-02T03:04:05.000Z level=INFO source=routes.go:1 msg=\"server config\"\n":                                                       "(Ollama)",
		"[GIN] 2026/01/02 - 03:04:42 | 200 | 37.3s | 127.0.0.1 | POST     \"/api/generate\"\n":                                                      "(Ollama)",
		"INFO:     127.0.0.1:5 - \"POST /v1/chat/completions HTTP/1.1\" 200 OK\n":                                                                   "(uvicorn)",
		"[00:03:00] [f3f0] [INFO] answered with 200 tokens\n[00:03:01] [f3f1] [INFO] answered with 201 tokens\n":                                    "text log of a program",
		"2026-01-02 03:04:05 one\n2026-01-02 03:04:06 two\n":                                                                                        "text log of a program",
		"2026-01-02T03:04:05Z stderr F [2026-01-02 03:04:46] Decode batch, #running-req: 1\n":                                                       "(SGLang)",
		`{"log":"INFO 01-02 03:04:05 [loggers.py:122] Engine 000: Avg prompt throughput\n","stream":"stderr","time":"2026-01-02T03:04:05Z"}` + "\n": "(vLLM)",
		"2026-01-02 03:04:05,250 INFO app: {\n  \"prompt_tokens\": 5\n}\n":                                                                          "behind a logger's prefix",
		"INFO:app:{'ts': '2026-01-02 03:04:05', 'prompt_tokens': 5}\n{'a': 1}\n":                                                                    "Python dicts",
		"{'ts': '2026-01-02 03:04:05', 'prompt_tokens': 5}\n":                                                                                       "Python dicts",
		"time=2026-01-02T03:04:05Z msg=\"done, x\" prompt_tokens=100\n":                                                                             "logfmt",
		"2026-01-02 03:04:05,250 INFO done prompt_tokens=100 output_tokens=5 model=m\n":                                                             "logfmt",
	} {
		_, _, err := read(strings.NewReader(in), Options{})
		found, _ := Inspect([]File{{Name: "log", Open: textFiles(in)[0].Open}}, Options{})
		if err == nil || found == nil || !strings.Contains(found.Missing, want) || len(found.Flags) > 0 {
			t.Errorf("%q: %v, %+v, want %s", in, err, found, want)
		}
	}
	for _, csv := range []string{"time,tokens\n2026-01-02 03:04:05,7\n", "2026-01-02 03:04:05,7\n2026-01-02 03:04:06,9\n", "prompt\nHello\n"} {
		if says := notRequests([]byte(csv)); says != "" {
			t.Errorf("%q: %s", csv, says)
		}
	}
}

// What begins with a bracket is JSON only where an array does.
func TestLooksLikeJSON(t *testing.T) {
	for in, want := range map[string]bool{
		`[{"a":1}]`: true, ` [ [1]]`: true, `["a"]`: true, `[1, 2]`: true, `[]`: true, `[null]`: true, `{`: true, `[`: true, `[12`: true,
		"[00:03:00] a": false, "[2026-01-02 03:04:05] a": false, "[INFO] a": false, "[1767323045] a": true, "a": false, "": false,
	} {
		if record.LooksLikeJSON([]byte(in)) != want {
			t.Errorf("%s: want %v", in, want)
		}
	}
}
