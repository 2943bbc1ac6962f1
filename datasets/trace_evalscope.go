package datasets

import (
	"bufio"
	"time"

	"reprise/datasets/internal/row"
	"reprise/datasets/internal/sniff"
)

var evalscopeFields = Mapping{
	"time":          {"timestamp"},
	"messages":      {"body.messages"},
	"tools":         {"body.tools", "body.functions"},
	"prompt":        {"body.prompt"},
	"model":         {"body.model"},
	"user":          {"body.user"},
	"salt":          {"body.cache_salt"},
	"max_tokens":    {"body.max_completion_tokens", "body.max_tokens"},
	"temperature":   {"body.temperature"},
	"stream":        {"body.stream"},
	"output_tokens": {"completion_tokens"},
}

// evalscopeFormat reads the workload traces of EvalScope's perf command
// (workload_trace.py): lines of JSON with the body of a request, as an object or
// as a string, its time in seconds or as a date, and sometimes the length of its
// output. Headers, which may hold keys, are not read.
func evalscopeFormat() Format {
	return Format{
		Name:    "evalscope",
		reads:   append(mappedFields(evalscopeFields, nil), fieldAt("body", "", packed)),
		About:   "EvalScope workload traces: JSON lines of request bodies and times",
		Example: `{"body":{"model":"m","messages":[{"role":"user","content":"Hello"}],"max_tokens":16},"timestamp":0.0,"request_id":"r1","completion_tokens":9}`,
		timed:   true,
		detect: sniff.Lines(func(has func(string) bool) bool {
			return has("body") && has("timestamp") && !has("custom_id") && !has("response")
		}),
		open: func(in *bufio.Reader, head []byte, o Options, s *Source) (decoder, error) {
			d, err := openJSONL(in, head, evalscopeFields, o, s)
			if err != nil {
				return nil, err
			}
			d.rows = evalscopeRows{d.rows.(row.JSON)}
			d.timing = withTimes
			d.clock.Usual, d.clock.Fractions = time.Second, true
			return d, nil
		},
	}
}

// evalscopeRows unpacks bodies that are strings.
type evalscopeRows struct{ row.JSON }

func (e evalscopeRows) Next() (row.Row, error) {
	r, err := e.JSON.Next()
	if err != nil {
		return nil, err
	}
	object := r.(row.JSONRow)
	if text, ok := object.Root["body"].(string); ok {
		body, _, ok := row.DecodeJSON([]byte(text))
		if !ok {
			return nil, row.BadAt(r, "body", "the body is not valid JSON")
		}
		object.AdmitAt("body", body)
		object.Root["body"] = body
	}
	return object, nil
}
