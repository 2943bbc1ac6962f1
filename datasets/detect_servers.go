package datasets

import (
	"bytes"
	"regexp"

	"reprise/datasets/internal/record"
)

// recordThem is what helps whatever a server logs.
const recordThem = "or put reprise record in front of it"

// serverLogs are what servers write of themselves at their default settings, which holds no
// requests. line is one that only that server writes.
var serverLogs = []struct {
	name string
	line *regexp.Regexp
	says string // how to have requests in the log
}{
	{"vLLM", regexp.MustCompile(
		`\[(?:loggers|metrics|launcher|api_server|async_llm_engine|argparse_utils|core|config|serving_[a-z]+|llm_engine|gpu_model_runner)\.py:\d+\]|\(APIServer pid=\d+\)|\(EngineCore[^)]*\)`),
		"start it with --enable-log-requests and VLLM_LOGGING_LEVEL=DEBUG"},
	{"SGLang", regexp.MustCompile(`(?:Prefill|Decode) batch[,.] *#(?:new-seq|running-req)`),
		"start it with --log-requests --log-requests-level 3 --log-requests-format json"},
	{"llama-server", regexp.MustCompile(
		`slot +launch_slot_: id|prompt eval time = +[\d.]+ ms|srv +log_server_r:|slot +print_timing`), ""},
	{"Ollama", regexp.MustCompile(`^\[GIN\] .*"/(?:api|v1)/|source=(?:routes|sched|server)\.go:\d+`), ""},
	{"Text Generation Inference", regexp.MustCompile(`text_generation_(?:router|launcher)(?:::|\b)`), ""},
	{"TensorRT-LLM", regexp.MustCompile(`\[TRT-LLM\]|\[TensorRT-LLM\]`), ""},
	{"LMDeploy", regexp.MustCompile(`\blmdeploy - \w+ - \w+\.py:\d+`),
		"start it with --log-level INFO --max-log-len 1000000"},
	{"uvicorn", regexp.MustCompile(`^INFO: +[\d.]+:\d+ - "[A-Z]+ /\S* HTTP/1\.\d" \d{3}`), ""},
}

// otherTexts are texts that a command makes JSON of, by their first line.
var otherTexts = []struct {
	line *regexp.Regexp
	says string
}{
	{regexp.MustCompile(`^[^{}\[]+\{\s*$`), "its JSON goes over several lines behind a logger's prefix: take the " +
		`prefixes off, with sed -n '/^[^[:space:]].*{$/,/^}/{s/^[^[:space:]].*{$/{/;p;}', or let the logger write ` +
		"each object in one line"},
	{regexp.MustCompile(`^[^{}]*\{'[^']*': `), "its lines are Python dicts, which are not JSON: make JSON of them, with " +
		"python3 -c 'import ast, json, sys; [print(json.dumps(ast.literal_eval(l[l.index(\"{\"):]))) for l in " +
		"sys.stdin if \"{\" in l]', or let the program write json.dumps of them"},
	{regexp.MustCompile(`^(?:\[?[^{"\[\]].*\s)?(?:[A-Za-z_][\w.-]*=(?:"[^"]*"|[^\s",;]+)\s*){3}`), "its lines are logfmt " +
		"(key=value): make JSON of them, with python3 -c 'import json, shlex, sys; [print(json.dumps(dict(w.split(" +
		"\"=\", 1) for w in shlex.split(l) if \"=\" in w))) for l in sys.stdin]', or let the program write JSON"},
}

// notRequests says what a text is that has no records: the log of which server, and how its
// requests can be had. It is empty for what may be CSV.
func notRequests(head []byte) string {
	for _, server := range serverLogs {
		for _, line := range record.HeadLines(head) {
			if !server.line.Match(ansiColour.ReplaceAll(line[:min(len(line), 1000)], nil)) {
				continue
			}
			says := "it is the log of a server (" + server.name + "), which holds no requests: "
			if server.says != "" {
				return says + server.says + ", " + recordThem
			}
			return says + "put reprise record in front of it"
		}
	}
	lines := record.HeadLines(head)
	for _, kind := range otherTexts {
		if len(lines) > 0 && kind.line.Match(lines[0]) {
			return kind.says
		}
	}
	if len(lines) > 0 && !bytes.ContainsAny(lines[0], ",;\t") {
		for _, line := range lines[:min(len(lines), 20)] {
			if !logLine.Match(line) {
				return ""
			}
		}
		return "it is the text log of a program, whose lines hold no requests that are known: import what a gateway " +
			"or server writes as JSON or CSV, " + recordThem
	}
	return ""
}

// logLine is a line of a log: a date, a time or a level comes first.
var logLine = regexp.MustCompile(`^\W*(?:\d{4}[-/]\d\d[-/]\d\d|\d\d:\d\d:\d\d|(?i:DEBUG|INFO|WARN|WARNING|ERROR)\b)`)
