package datasets

import (
	"bufio"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/row"
	"reprise/datasets/internal/sniff"
	tokenusage "reprise/trace/usage"
)

// gatewayFields is where a gateway's CSV has its fields: the request and its
// answer as JSON in a column each, what is of the call in others.
var gatewayFields = Mapping{
	"time":          {"timestamp", "time", "created_at", "start_time", "created", "ts"},
	"user":          {"user_id", "user", "request_json.user"},
	"session":       {"session_id", "conversation_id", "session"},
	"model":         {"request_json.model", "model"},
	"salt":          {"request_json.cache_salt"},
	"prefix_key":    {"request_json.prompt_cache_key"},
	"messages":      {"request_json.messages"},
	"tools":         {"request_json.tools", "request_json.functions"},
	"prompt":        {"request_json.prompt"},
	"max_tokens":    {"request_json.max_completion_tokens", "request_json.max_tokens"},
	"temperature":   {"request_json.temperature"},
	"stream":        {"request_json.stream"},
	"output":        {"response_json.choices.0.message", "response_json.choices.0.text"},
	"finish_reason": {"response_json.choices.0.finish_reason"},
	"input_tokens":  {"prompt_tokens", "input_tokens"},
	"output_tokens": {"completion_tokens", "output_tokens"},
	"status":        {"status_code", "status"},
	"error":         {"response_json.error"},
	"ttft_ms":       {"ttft_ms"},
	"e2e_ms":        {"latency_ms", "duration_ms", "e2e_ms"},
	bodyAt:          {askedChat},
}

// gatewayCSVFormat reads CSV with a column request_json, which holds the bodies of
// requests to an OpenAI-compatible endpoint, and perhaps response_json, times and
// lengths beside it. A response that is no JSON, such as a stream as it came, is
// not read.
func gatewayCSVFormat() Format {
	return Format{
		Name: "gateway-csv",
		reads: append(mappedFields(gatewayFields, nil), fieldAt("request_json|response_json", "", packed),
			usageAt(gatewayUsage)),
		About: "CSV with columns request_json (OpenAI-style requests), response_json and timestamp",
		Example: "timestamp,request_json\n" +
			`2026-01-02T03:04:05Z,"{""messages"":[{""role"":""user"",""content"":""Hello""}]}"`,
		timed:  true,
		dated:  true,
		csv:    true,
		bodies: []string{"request_json"},
		detect: sniff.Columns("request_json"),
		open: func(in *bufio.Reader, head []byte, o Options, s *Source) (decoder, error) {
			all, first, err := csvInputs(in, head, o, s)
			if err != nil {
				return nil, err
			}
			all.Admit(s.fields, nil)
			counts := newUsageReader(tokenusage.Body, []string{gatewayUsage}, nil, o)
			show := func(r row.Row, tell *fault.Notes) (row.Row, error) { return showGateway(r, counts, tell) }
			return openView(all, first, show, gatewayFields.withUsage(), o, s)
		},
	}
}

// gatewayUsage is where the usage of a call is; columns of counts are read without it.
const gatewayUsage = "response_json.usage"

const noteOtherResponses = "responses that are not JSON, which were not read"

func showGateway(r row.Row, counts *usageReader, tell *fault.Notes) (row.Row, error) {
	v := row.NewView(r)
	if !v.Unpack("request_json") {
		return nil, row.BadAt(r, "request_json", "request_json: want JSON")
	}
	putChatBody(v, "request_json", "request_json")
	switch {
	case v.Unpack("response_json"):
	case r.Cut():
		return nil, row.BadAt(r, "response_json", "response_json: want JSON")
	default:
		tell.Count(noteOtherResponses)
	}
	return v, counts.show(v, tell)
}
