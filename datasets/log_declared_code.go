package datasets

import (
	"bufio"
	"strconv"
	"strings"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/record"
)

// codeOfFormats is the code of formats that need more than a mapping, by name.
var codeOfFormats = map[string]formatCode{
	"aibrix": {
		made: map[string]string{"time_of_all": "timestamp"},
		show: func(v viewRow) {
			if in, ok := v.row.(memberRow); ok {
				at, _ := in.row.value("timestamp")
				v.made["time_of_all"] = at
			}
		},
	},
	"azure-apim": {
		also: isLLMTable,
		join: func(in rows, fields Mapping, tell *fault.Notes) rows {
			return &apimRows{in: &tableRows{in: in}, fields: fields, tell: tell, open: map[string]*apimParts{}}
		},
		whole: []string{"tables", "CorrelationId", "SequenceNumber"},
	},
	"bedrock": {
		made: map[string]string{"made_ttft": "output.outputBodyJson", "made_e2e": "output.outputBodyJson"},
		show: showBedrockStream,
	},
	"lmcache": {match: isLMCacheTrace},
	"mlflow":  {made: mlflowMade, show: showMLflow},
	"openrouter": {
		made: map[string]string{"made_status": "cancelled"},
		show: showOpenRouter,
	},
	"openrouter-api": {
		made: map[string]string{"made_status": "cancelled", "made_ttft": "latency"},
		show: showOpenRouter,
		match: func(r row) bool {
			return hasAny(r, "data.native_tokens_prompt", "native_tokens_prompt") && hasAny(r, "data.created_at", "created_at") || isDailySum(r)
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
		made: map[string]string{"model_of_endpoint": "endpoint", "made_usage": "response_payload", "made_request": "request_payload"},
		show: showVertex,
	},
}

// isLMCacheTrace tells a record that has its four keys and no other.
func isLMCacheTrace(r row) bool {
	in, _ := r.value("input")
	out, _ := r.value("output")
	at, _ := r.value("timestamp")
	_, isNumber := at.(number)
	record, isJSON := r.(jsonRow)
	return isString(in) && isString(out) && isNumber && isJSON && len(record.root) == 4
}

func isDailySum(r row) bool {
	return hasAny(r, "date") && hasAny(r, "requests") && hasAny(r, "usage") && hasAny(r, "model_permaslug", "endpoint_id")
}

// showOpenRouter tells a cancelled call, and takes a latency that is shorter than the whole call for the time to
// its first token.
func showOpenRouter(v viewRow) {
	if (condition{path: "cancelled", values: "true 1"}).holds(v) {
		v.put("made_status", "cancelled", "cancelled")
	}
	latency, _ := v.value("latency")
	whole, _ := v.value("generation_time")
	first, err := strconv.ParseFloat(plain(latency), 64)
	last, err2 := strconv.ParseFloat(plain(whole), 64)
	if err == nil && err2 == nil && first < last {
		v.put("made_ttft", latency, "latency")
	}
}

// showBedrockStream finds the latencies of a streamed answer, which is a list of chunks.
func showBedrockStream(v viewRow) {
	found, _ := v.value("output.outputBodyJson")
	chunks, _ := found.([]any)
	for _, chunk := range chunks {
		for to, paths := range map[string][]string{
			"made_ttft": {"amazon-bedrock-invocationMetrics.firstByteLatency"},
			"made_e2e":  {"amazon-bedrock-invocationMetrics.invocationLatency", "metadata.metrics.latencyMs", "metrics.latencyMs"},
		} {
			for _, path := range paths {
				if n, ok := lookup(chunk, path); ok {
					v.put(to, n, "output.outputBodyJson")
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
func showMLflow(v viewRow) {
	if span, ok := v.row.(memberRow); ok {
		for _, name := range []string{"session_of_trace", "user_of_trace"} {
			if found, path, ok := findFirst(span.row, strings.Split(mlflowMade[name], "|")); ok {
				v.put(name, found, path)
			}
		}
	}
	found, _ := v.value("events")
	events, _ := found.([]any)
	for _, event := range events {
		if name, _ := lookup(event, "name"); plain(name) == "mlflow.chunk.item.0" {
			if at, ok := lookup(event, "time_unix_nano"); ok {
				v.put("first_chunk", at, "events")
			}
		}
	}
}

// showVertex puts the pieces of payloads together: of a request they are one JSON, of an
// answer chunks, the last of which has the counts.
func showVertex(v viewRow) {
	endpoint, _ := v.value("endpoint")
	if path := plain(endpoint); path != "" {
		v.put("model_of_endpoint", path[1+strings.LastIndexByte(path, '/'):], "endpoint")
	}
	var request string
	pieces, _ := v.value("request_payload")
	list, _ := pieces.([]any)
	for _, piece := range list {
		request += plain(piece)
	}
	if body, _, ok := decodeJSON([]byte(request)); ok {
		v.put("made_request", body, "request_payload")
	}
	chunks, _ := v.value("response_payload")
	list, _ = chunks.([]any)
	for _, chunk := range list {
		body, _, _ := decodeJSON([]byte(plain(chunk)))
		for _, name := range []string{"usageMetadata", "usage"} { // Gemini's, and that of other publishers
			if usage, ok := lookup(body, name); ok {
				v.put("made_usage", usage, "response_payload")
			}
		}
	}
}
