package datasets

import (
	"bufio"
	"strconv"
	"strings"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/record"
	"reprise/datasets/internal/row"
	"reprise/datasets/internal/stamp"
)

// codeOfFormats is the code of formats that need more than a mapping, by name.
var codeOfFormats = map[string]formatCode{
	"agent-otel": {show: spanAttributes},
	"azure-apim": {
		also: isLLMTable,
		join: func(in row.Reader, fields Mapping, tell *fault.Notes) row.Reader {
			return &apimRows{in: &tableRows{in: in}, fields: fields, tell: tell, open: map[string]*apimParts{}}
		},
		whole: []string{"tables", "CorrelationId", "SequenceNumber"},
	},
	"azure-2024": {match: hasZone, cells: hasZone},
	"bedrock": {
		made: map[string]string{"made_ttft": "output.outputBodyJson", "made_e2e": "output.outputBodyJson"},
		show: showBedrockStream,
	},
	"evalscope": {cells: func(row.Row) bool { return false }}, // a table with a body is some log
	"lmcache":   {match: isLMCacheTrace},
	"mlflow":    {made: mlflowMade, show: showMLflow},
	"openrouter": {
		made: map[string]string{"made_status": "cancelled"},
		show: showOpenRouter,
	},
	"openrouter-api": {
		made: map[string]string{"made_status": "cancelled", "made_ttft": "latency"},
		show: showOpenRouter,
		match: func(r row.Row) bool {
			return row.HasAny(r, "data.native_tokens_prompt", "native_tokens_prompt") &&
				row.HasAny(r, "data.created_at", "created_at") || isDailySum(r)
		},
	},
	"sglang": {
		also: isSGLangLog,
		lines: func(in *bufio.Reader, tell *fault.Notes) record.Reader {
			return sglangLines{record.NewLines(in),
				tell}
		},
	},
	"vertex": {
		made: map[string]string{"model_of_endpoint": "endpoint", "made_usage": "response_payload",
			"made_request": "request_payload"},
		show: showVertex,
	},
}

// hasZone tells the Azure traces of 2024 from those of 2023.
func hasZone(r row.Row) bool {
	at, _ := row.TimeAt(r, []string{"TIMESTAMP"})
	return at.Style == stamp.Zoned
}

// isLMCacheTrace tells a record that has its four keys and no other.
func isLMCacheTrace(r row.Row) bool {
	in, _ := r.Value("input")
	out, _ := r.Value("output")
	at, _ := r.Value("timestamp")
	_, isNumber := at.(row.Number)
	record, isJSON := r.(row.JSONRow)
	return row.IsString(in) && row.IsString(out) && isNumber && isJSON && len(record.Root) == 4
}

func isDailySum(r row.Row) bool {
	return row.HasAny(r, "date") && row.HasAny(r, "requests") && row.HasAny(r, "usage") &&
		row.HasAny(r, "model_permaslug", "endpoint_id")
}

// showOpenRouter tells a cancelled call, and takes a latency that is shorter than the whole call for the time to
// its first token.
func showOpenRouter(v row.View) {
	if (condition{path: "cancelled", values: "true 1"}).holds(v) {
		v.Put("made_status", "cancelled", "cancelled")
	}
	latency, _ := v.Value("latency")
	whole, _ := v.Value("generation_time")
	first, err := strconv.ParseFloat(row.Plain(latency), 64)
	last, err2 := strconv.ParseFloat(row.Plain(whole), 64)
	if err == nil && err2 == nil && first < last {
		v.Put("made_ttft", latency, "latency")
	}
}

// showBedrockStream finds the latencies of a streamed answer, which is a list of chunks.
func showBedrockStream(v row.View) {
	found, _ := v.Value("output.outputBodyJson")
	chunks, _ := found.([]any)
	for _, chunk := range chunks {
		for to, paths := range map[string][]string{
			"made_ttft": {"amazon-bedrock-invocationMetrics.firstByteLatency"},
			"made_e2e": {"amazon-bedrock-invocationMetrics.invocationLatency", "metadata.metrics.latencyMs",
				"metrics.latencyMs"},
		} {
			for _, path := range paths {
				if n, ok := row.Lookup(chunk, path); ok {
					v.Put(to, n, "output.outputBodyJson")
				}
			}
		}
	}
}

// mlflowMade is where [showMLflow] takes what it makes from.
var mlflowMade = map[string]string{
	"session_of_trace": "info.trace_metadata.mlflow.trace.session|info.request_metadata.mlflow.trace.session",
	"user_of_trace":    "info.trace_metadata.mlflow.trace.user|info.request_metadata.mlflow.trace.user",
	"first_chunk":      "events[].name|events[].time_unix_nano",
}

// showMLflow gives a span what its trace says of all, and finds its first token: the
// chunks of a stream are events.
func showMLflow(v row.View) {
	if span, ok := v.Row.(row.MemberRow); ok {
		for _, name := range []string{"session_of_trace", "user_of_trace"} {
			if found, path, ok := row.Find(span.Row, strings.Split(mlflowMade[name], "|")); ok {
				v.Put(name, found, path)
			}
		}
	}
	found, _ := v.Value("events")
	events, _ := found.([]any)
	for _, event := range events {
		if name, _ := row.Lookup(event, "name"); row.Plain(name) == "mlflow.chunk.item.0" {
			if at, ok := row.Lookup(event, "time_unix_nano"); ok {
				v.Put("first_chunk", at, "events")
			}
		}
	}
}

// showVertex puts the pieces of payloads together: of a request they are one JSON, of an
// answer chunks, the last of which has the counts.
func showVertex(v row.View) {
	endpoint, _ := v.Value("endpoint")
	if path := row.Plain(endpoint); path != "" {
		v.Put("model_of_endpoint", path[1+strings.LastIndexByte(path, '/'):], "endpoint")
	}
	var request string
	pieces, _ := v.Value("request_payload")
	list, _ := pieces.([]any)
	for _, piece := range list {
		request += row.Plain(piece)
	}
	if body, _, ok := row.DecodeJSON([]byte(request)); ok {
		v.Put("made_request", body, "request_payload")
	}
	chunks, _ := v.Value("response_payload")
	list, _ = chunks.([]any)
	for _, chunk := range list {
		body, _, _ := row.DecodeJSON([]byte(row.Plain(chunk)))
		for _, name := range []string{"usageMetadata", "usage"} { // Gemini's, and that of other publishers
			if usage, ok := row.Lookup(body, name); ok {
				v.Put("made_usage", usage, "response_payload")
			}
		}
	}
}
