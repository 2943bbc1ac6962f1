package datasets

import (
	"bufio"
	"bytes"
	"strconv"
	"strings"
)

// langfuseFields is where exports of Langfuse have their fields, in the spelling
// of its database and in that of its API.
var langfuseFields = Mapping{
	"time":             {"start_time", "startTime"},
	"input_tokens":     {"tokens.input"},
	"output_tokens":    {"tokens.output"},
	"cached_tokens":    {"tokens.cached"},
	"reasoning_tokens": {"tokens.reasoning"},
	"user":             {"user_id", "userId"},
	"session":          {"session_id", "sessionId", "trace_id", "traceId"},
	"model":            {"provided_model_name", "providedModelName", "model"},
	"max_tokens":       {"max_tokens"},
	"temperature":      {"temperature"},
	"error":            {"failed"},
	"ttft_ns":          {"ttft"},
	"e2e_ns":           {"e2e"},
	"messages":         {"text.messages"},
	"tools":            {"input.tools", "input.functions"},
	"prompt":           {"text.prompt"},
	"output":           {"text.output"},
}

var langfuseTimes = latencyPaths{
	[]string{"start_time", "startTime"}, []string{"completion_start_time", "completionStartTime"}, []string{"end_time", "endTime"},
}

// langfuseMade is where [showLangfuse] takes what it makes from, and langfuseReads
// what it reads beside that.
var (
	langfuseMade = map[string]string{
		"tokens.input": "usage_details|usageDetails|usage", "tokens.output": "usage_details|usageDetails|usage",
		"tokens.cached": "usage_details|usageDetails|usage", "tokens.reasoning": "usage_details|usageDetails|usage",
		"max_tokens":  "model_parameters.max_completion_tokens|model_parameters.max_tokens|modelParameters.max_completion_tokens|modelParameters.max_tokens",
		"temperature": "model_parameters.temperature|modelParameters.temperature",
		"failed":      "level", "ttft": "completion_start_time|completionStartTime", "e2e": "end_time|endTime",
		"text.messages": "input.messages", "text.prompt": "input", "text.output": "output",
	}
	langfuseReads = []SourceField{
		fieldAt("model_parameters|modelParameters", "", packed),
		fieldAt("type", "", decides),
	}
)

// langfuseFormat reads observations as Langfuse exports them: CSV, a JSON array
// or JSON lines. The rules:
//
//   - Only observations of type GENERATION are calls of a model; the others are
//     left out.
//   - Dates without a zone are UTC, as ClickHouse writes them.
//   - The types of usage add up: Langfuse takes each detail, such as
//     input_cached_tokens or output_reasoning_tokens, out of input and output when
//     it stores a usage of OpenAI's. So the length of the prompt is the sum of all
//     types of input, unless total shows that input holds the details already.
//   - Without a session, the calls of one trace are taken as one.
func langfuseFormat() Format {
	detect := detectObject(func(has func(string) bool) bool {
		return has("type") && (has("start_time") && (has("usage_details") || has("trace_id")) ||
			has("startTime") && (has("usageDetails") || has("traceId")))
	})
	columns := detectColumns("type", "start_time", "usage_details")
	camel := detectColumns("type", "startTime", "usageDetails")
	return Format{
		Name:    "langfuse",
		reads:   append(mappedFields(langfuseFields, langfuseMade), langfuseReads...),
		About:   "observations exported from Langfuse, as CSV, a JSON array or JSON lines",
		Example: `{"id":"o1","trace_id":"t1","type":"GENERATION","start_time":"2026-01-02 03:04:05.678901","end_time":"2026-01-02 03:04:07.1","usage_details":{"input":120,"output":40}}`,
		dated:   true,
		detect:  func(head []byte) bool { return detect(head) || columns(head) || camel(head) },
		open: func(in *bufio.Reader, head []byte, o Options, s *Source) (decoder, error) {
			if start := bytes.TrimSpace(head); len(start) > 0 && (start[0] == '{' || start[0] == '[') {
				all, first := jsonInput(in, head, s)
				return openLangfuse(all, first, o, s)
			}
			all, first, err := csvInputs(in, head, o, s)
			if err != nil {
				return nil, err
			}
			all.admit(s.fields)
			return openLangfuse(all, first, o, s)
		},
	}
}

func openLangfuse(all, first rows, o Options, s *Source) (decoder, error) {
	d, err := openView(all, first, showLangfuse, langfuseFields, o, s)
	if err != nil {
		return nil, err
	}
	d.timing = withTimes
	return d, nil
}

const (
	noteOtherObservations = "observations that are no generations were left out"
	noteNoMessages        = "prompts that are not messages, of which only the lengths were read"
)

func showLangfuse(r row, tell *notes) (row, error) {
	if kind, _ := r.value("type"); !strings.EqualFold(plain(kind), "GENERATION") {
		tell.count(noteOtherObservations)
		return nil, nil
	}
	v := newView(r)
	for _, name := range []string{"usage_details", "usageDetails", "usage", "model_parameters", "modelParameters"} {
		if !v.unpack(name) {
			return nil, badAt(r, name, name+": want JSON")
		}
	}
	v.latencies(langfuseTimes, 0, tell)
	if level, _ := r.value("level"); plain(level) == "ERROR" {
		v.put("failed", true, "level")
	}
	langfuseTokens(v)
	// The SDKs write inf and words for parameters that were not set: only numbers
	// are taken.
	found, origin, _ := findFirst(v, []string{"model_parameters", "modelParameters"})
	parameters, _ := found.(map[string]any)
	for _, name := range []string{"max_completion_tokens", "max_tokens"} {
		if _, ok := countOf(plain(parameters[name])); ok {
			v.put("max_tokens", parameters[name], origin)
		}
	}
	if t := parameters["temperature"]; setTemperature(&builder{}, t) == "" {
		v.put("temperature", t, origin)
	}
	langfuseText(v, tell)
	return v, nil
}

// langfuseTokens makes "tokens" of the types of usage. Which of them are there
// is the choice of whoever logged them.
func langfuseTokens(v viewRow) {
	found, origin, _ := findFirst(v, []string{"usage_details", "usageDetails", "usage"})
	usage, _ := found.(map[string]any)
	sums := map[string]int64{}
	for name, value := range usage {
		n, ok := countOf(plain(value))
		if !ok {
			continue
		}
		side := "input"
		switch {
		case strings.Contains(name, "input"):
		case strings.Contains(name, "output"):
			side = "output"
		default:
			continue
		}
		sums[side] += int64(n)
		switch {
		case side == "input" && strings.Contains(name, "cache") && !strings.Contains(name, "creat") && !strings.Contains(name, "write"):
			sums["cached"] += int64(n)
		case strings.Contains(name, "reasoning"):
			sums["reasoning"] += int64(n)
		}
	}
	total, _ := countOf(plain(usage["total"]))
	input, ok := countOf(plain(usage["input"]))
	output, ok2 := countOf(plain(usage["output"]))
	if ok && ok2 && total > 0 && int64(total) == int64(input)+int64(output) {
		sums["input"], sums["output"] = int64(input), int64(output)
	}
	tokens := map[string]any{}
	for name, n := range sums {
		tokens[name] = number(strconv.FormatInt(n, 10))
	}
	v.put("tokens", tokens, origin)
}

// langfuseText makes "text" of the input and the output, which may be anything.
func langfuseText(v viewRow, tell *notes) {
	v.unpack("input") // a plain text is none
	v.unpack("output")
	text := map[string]any{}
	v.made["text"] = text
	input, _ := v.value("input")
	if fields, ok := input.(map[string]any); ok {
		input = fields["messages"]
	}
	v.from["text.messages"], v.from["text.prompt"], v.from["text.output"] = "input", "input", "output"
	switch {
	case areMessages(input):
		text["messages"] = input
	case isString(input):
		text["prompt"] = input
	default:
		tell.count(noteNoMessages)
	}
	switch output, _ := v.value("output"); output := output.(type) {
	case string, map[string]any:
		text["output"] = output
	case []any:
		if areMessages(output) {
			text["output"] = output[0]
		}
	}
}
