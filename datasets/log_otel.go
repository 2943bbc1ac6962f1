package datasets

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/row"
	"reprise/datasets/internal/sniff"
	"reprise/datasets/internal/stamp"
	"reprise/datasets/internal/talk"
	tokenusage "reprise/trace/usage"
)

// otelFields is where a span has its fields, in the words of the OpenTelemetry
// semantic conventions for generative AI, of their earlier versions, and of vLLM.
var otelFields = Mapping{
	"time": {"startTimeUnixNano", "start_time_unix_nano", "start_time", "startTime"},
	"input_tokens": {"tokens.input", "attributes.gen_ai.usage.input_tokens",
		"attributes.gen_ai.usage.prompt_tokens", "attributes.llm.token_count.prompt"},
	"output_tokens": {"tokens.output", "attributes.gen_ai.usage.output_tokens",
		"attributes.gen_ai.usage.completion_tokens", "attributes.llm.token_count.completion"},
	"cached_tokens":    {"tokens.cached"},
	"reasoning_tokens": {"tokens.reasoning"},
	"user":             {"attributes.enduser.id", "attributes.user.id"},
	"session":          {"attributes.gen_ai.conversation.id", "attributes.session.id", "session_of_all"},
	"model": {"attributes.gen_ai.request.model", "attributes.gen_ai.response.model",
		"attributes.llm.model_name"},
	"kind":          {"kind_of_call"},
	"max_tokens":    {"attributes.gen_ai.request.max_tokens", "asked_max_tokens"},
	"temperature":   {"attributes.gen_ai.request.temperature", "asked_temperature"},
	"error":         {"failed", "attributes.error.type", "attributes.error"},
	"finish_reason": {"finish_reason"},
	"ttft_s": {"attributes.gen_ai.response.time_to_first_chunk", "attributes.gen_ai.latency.time_to_first_token",
		"attributes.gen_ai.server.time_to_first_token"},
	"ttft_ms":  {"attributes.ai.response.msToFirstChunk"},
	"ttft_ns":  {"ttft"},
	"e2e_s":    {"attributes.gen_ai.latency.e2e"},
	"e2e_ns":   {"e2e"}, // set last: the length of the span
	"messages": {"messages"},
	"tools":    {"attributes.gen_ai.tool.definitions", "tools"},
	"output":   {"output"},
}

var otelTimes = row.Latencies{
	Start: otelFields["time"],
	First: []string{"first_token_at"},
	End:   []string{"endTimeUnixNano", "end_time_unix_nano", "end_time", "endTime"},
}

// otelMade is where [showSpan] takes what it makes from. Attributes of OTLP are lists of keys and values;
// here they stand by their keys.
var otelMade = map[string]string{
	"kind_of_call": "attributes.gen_ai.operation.name", "failed": "status",
	"e2e": "endTimeUnixNano|end_time_unix_nano|end_time|endTime",
	"finish_reason": "attributes.gen_ai.response.finish_reasons|attributes.llm.finish_reason|" +
		"attributes.ai.response.finishReason|attributes.gen_ai.completion.0.finish_reason",
	"ttft": "", "tools": "", "asked_max_tokens": "", "asked_temperature": "", "session_of_all": "",
	"messages": "attributes.gen_ai.input.messages|attributes.gen_ai.system_instructions|attributes.ai.prompt.messages",
	"output":   "attributes.gen_ai.output.messages|attributes.ai.response.text",
	"tokens":   "",
}

// otelFormat reads spans of OpenTelemetry: OTLP's JSON as the collector writes it,
// one export a line or a file, and flat spans with plain attributes, one a line or
// in a list called spans. The rules:
//
//   - A span that is not the call of a model, such as one of a tool, an agent or
//     a database, is left out. An agent's span repeats the usage of its calls.
//   - Arrival is the start of a span, and the time to last token its length.
//   - Messages are read in the form of the conventions, with parts, and in
//     OpenAI's, as JSON or as attributes of their own kind.
//   - vLLM's latencies are seconds.
//   - Instrumentations pass on the counts of the provider, Anthropic's too: see
//     [usageReader].
func otelFormat() Format {
	return Format{
		reads: append(mappedFields(otelFields, otelMade), inferenceReads...),
		timed: true, labels: true,
		detect: sniff.Objects(func(has func(string) bool) bool {
			return has("resourceSpans") || has("scopeSpans") || has("spans") || hasOpenInference(has) ||
				has("attributes") && has("name") && (has("start_time") || has("startTimeUnixNano") || has("startTime"))
		}),
		open: rowsOpener(openSpans).objects,
	}.described("otel-genai")
}

func openSpans(all, first row.Reader, o Options, s *Source) (decoder, error) {
	counts := newUsageReader(tokenusage.Relayed, []string{"attributes"}, nil, o)
	show := func(r row.Row, tell *fault.Notes) (row.Row, error) {
		return showSpan(r, counts, stamp.UnitOf(o.TimeUnit), tell)
	}
	lists := [][]string{{"resourceSpans", "scopeSpans", "spans"}, {"scopeSpans", "spans"}, {"spans"}}
	calls := func(in row.Reader, known *knownSpans, tell *fault.Notes) row.Reader {
		members := &row.Members{In: keptRows{in}, Lists: lists}
		return &spanCalls{in: members, show: show, of: spanOf, known: known, tell: tell}
	}
	d, err := newMappedDecoder(calls(all, &s.spans, &s.notes), calls(first, &knownSpans{}, new(fault.Notes)),
		otelFields, o, s)
	if err != nil {
		return nil, err
	}
	d.timing = withTimes
	return d, nil
}

// Where a span says which it is.
var (
	spanTraces  = []string{"traceId", "trace_id", "context.trace_id", "traceID"}
	spanIDs     = []string{"spanId", "span_id", "context.span_id", "spanID"}
	spanParents = []string{"parentSpanId", "parent_span_id", "parent_id", "parentId", "references.0.spanID"}
)

// spanOf says where a span stands. The ids of a record without a trace are its own.
func spanOf(r, shown row.Row) (c spanCall) {
	trace, _, _ := row.Find(r, spanTraces)
	id, _, _ := row.Find(r, spanIDs)
	above, _, _ := row.Find(r, spanParents)
	c.trace, c.id, c.above = row.Plain(trace), row.Plain(id), row.Plain(above)
	if in, ok := r.(row.MemberRow); ok && c.trace == "" {
		line, col := in.Row.Place("")
		c.trace = fmt.Sprint("record ", line, ":", col)
	}
	if shown != nil {
		answer, _ := shown.Value("attributes.gen_ai.response.id")
		unsure, _ := shown.Value("unsure")
		c.response, c.unsure = row.Plain(answer), unsure == true
	}
	return c
}

const (
	noteOtherSpans   = "spans that are no calls of a model were left out"
	noteUnknownSpans = "spans of the operation %s were taken as calls of a model, since they have usage"
	noteFailedSpans  = "calls that failed and tell neither their prompt nor its length were left out"
	noteCutAttribute = "messages that are not whole JSON, as a limit on attribute lengths leaves them: only the " +
		"lengths were read"
)

func showSpan(r row.Row, counts *usageReader, unit time.Duration, tell *fault.Notes) (row.Row, error) {
	v := row.NewView(r)
	spanAttributes(v)
	clockTimes(v, slices.Concat(otelTimes.Start, otelTimes.End)...)
	kind, is := callOfSpan(v)
	if is == noCall {
		tell.Count(noteOtherSpans)
		return nil, nil
	}
	if err := counts.show(v, tell); err != nil {
		return nil, err
	}
	operation, _ := v.Value("attributes.gen_ai.operation.name")
	switch {
	case is == callByUsage && !hasUsage(v) && (row.Plain(operation) != "" || !recordsCall(v)):
		tell.Count(noteOtherSpans)
		return nil, nil
	case is == callByUsage && row.Plain(operation) != "":
		tell.CountNamed(noteUnknownSpans, row.Plain(operation))
	}
	v.Made["unsure"] = is == callByUsage
	if kind != "" {
		v.Made["kind_of_call"] = kind
	}
	v.PutLatencies(otelTimes, unit, tell)
	code, _, _ := row.Find(v, []string{"status.code", "status.status_code", "status", "attributes.otel.status_code"})
	if s := strings.ToUpper(row.Plain(code)); s == "2" || s == "ERROR" || strings.HasSuffix(s, ".ERROR") ||
		strings.HasSuffix(s, "_ERROR") {
		v.Put("failed", true, "status")
	}
	spanMessages(v, tell)
	inferenceMessages(v)
	makeFinishReason(v)
	if in, ok := r.(row.MemberRow); ok { // one conversation for all spans of a record
		if session, _ := in.Row.Value("session_id"); row.IsString(session) {
			v.Made["session_of_all"] = session
		}
	}
	if row.HasAny(v, "failed") && !row.HasAny(v, otelFields["input_tokens"]...) && !row.HasAny(v, "messages") {
		tell.Count(noteFailedSpans)
		return nil, nil
	}
	return v, nil
}

// clockTimes makes numbers of times that are lists of seconds and nanoseconds, as Node's clock has
// them.
func clockTimes(v row.View, paths ...string) {
	for _, path := range paths {
		found, _ := v.Value(path)
		list, _ := found.([]any)
		if len(list) != 2 {
			continue
		}
		seconds, err := strconv.ParseUint(row.Plain(list[0]), 10, 40)
		nanoseconds, err2 := strconv.ParseUint(row.Plain(list[1]), 10, 30)
		if err == nil && err2 == nil && nanoseconds < 1e9 {
			v.Put(path, row.Number(fmt.Sprintf("%d.%09d", seconds, nanoseconds)), path)
		}
	}
}

// What a span is.
type spanRole int

const (
	noCall      spanRole = iota // of a tool, an agent, a database
	callByName                  // its operation or its kind says that it is the call of a model
	callByUsage                 // it is one if it has usage
)

// hasUsage reports whether a span counts tokens.
func hasUsage(v row.View) bool {
	for _, path := range []string{"tokens.input", "tokens.output"} {
		found, _ := v.Value(path)
		if n, ok := countOf(row.Plain(found)); ok && n > 0 {
			return true
		}
	}
	return false
}

// recordsCall reports whether a span without an operation has what a call has.
func recordsCall(v row.View) bool {
	return row.HasAny(v, otelFields["input_tokens"]...) ||
		row.HasAny(v, "attributes.gen_ai.input.messages", "attributes.gen_ai.prompt.0.role")
}

// callOfSpan says what a span is, and what kind of call: by its operation, or by the kind that
// OpenInference gives it, or, without either, by what was recorded. Vercel's AI SDK puts one
// around each call.
func callOfSpan(v row.View) (kind string, is spanRole) {
	operation, _ := v.Value("attributes.gen_ai.operation.name")
	inference, _, _ := row.Find(v, []string{"attributes.openinference.span.kind", "span_kind"})
	vercel, _ := v.Value("attributes.ai.operationId")
	name := strings.ToLower(row.Plain(operation))
	if word := strings.ToLower(row.Plain(inference)); name == "" && word != "" && word != "internal" &&
		word != "client" {
		name = word
	}
	switch name {
	case "chat", "generate_content":
		return "chat", callByName
	case "llm":
		return "", callByName
	case "text_completion", "completion":
		return "completion", callByName
	case "embeddings", "embedding":
		return "embedding", callByName
	case "execute_tool", "tool", "invoke_agent", "create_agent", "invoke_workflow", "agent", "chain", "retriever",
		"retrieval", "reranker", "guardrail", "evaluator", "prompt":
		return "", noCall
	case "":
		if id := row.Plain(vercel); id != "" && !strings.Contains(id, ".do") {
			return "", noCall
		}
	}
	return "", callByUsage
}

// plainAttributes makes an object of OTLP's list of keys and typed values.
func plainAttributes(list []any) map[string]any {
	out := map[string]any{}
	for _, a := range list {
		fields, _ := a.(map[string]any)
		if key, ok := fields["key"].(string); ok {
			out[key] = plainValue(fields["value"])
		}
	}
	return out
}

// plainValue takes a value out of its type. OTLP writes 64-bit integers as
// strings. Jaeger's values stand beside their type.
func plainValue(v any) any {
	fields, isTyped := v.(map[string]any)
	if !isTyped {
		return v
	}
	for _, kind := range []string{"stringValue", "boolValue", "doubleValue", "intValue", "arrayValue", "kvlistValue"} {
		value, ok := fields[kind]
		if !ok {
			continue
		}
		members, _ := row.Lookup(value, "values")
		list, _ := members.([]any)
		switch kind {
		case "intValue":
			return row.Number(row.Plain(value))
		case "arrayValue":
			out := make([]any, len(list))
			for i, m := range list {
				out[i] = plainValue(m)
			}
			return out
		case "kvlistValue":
			return plainAttributes(list)
		}
		return value
	}
	return nil
}

// spanMessages makes "messages" and "output" of what a span recorded of them.
func spanMessages(v row.View, tell *fault.Notes) {
	const input, output, system = "attributes.gen_ai.input.messages", "attributes.gen_ai.output.messages",
		"attributes.gen_ai.system_instructions"
	messages, whole := listAt(v, input)
	if len(messages) == 0 && whole { // of Vercel's AI SDK
		messages, whole = listAt(v, "attributes.ai.prompt.messages")
	}
	if !whole {
		tell.Count(noteCutAttribute)
	}
	for i := range messages {
		messages[i] = talk.JoinParts(messages[i])
	}
	instructions, whole := listAt(v, system)
	switch {
	case !whole:
		messages = nil
		tell.Count(noteCutAttribute)
	case len(instructions) > 0 && len(messages) > 0:
		head := talk.JoinParts(map[string]any{"role": "system", "parts": instructions})
		messages = append([]any{head}, messages...)
	}
	switch {
	case talk.AreMessages(messages):
		v.Put("messages", messages, "attributes")
	case len(messages) > 0:
		tell.Count(noteNoMessages)
	}
	if replies, _ := listAt(v, output); talk.AreMessages(replies) {
		v.Put("output", talk.JoinParts(replies[0]), "attributes")
	} else if text, _ := v.Value("attributes.ai.response.text"); row.IsString(text) {
		v.Put("output", text, "attributes")
	}
}

// listAt returns a list that an attribute holds, as JSON or as it is; whole is
// false when it holds something else.
func listAt(v row.View, path string) (list []any, whole bool) {
	found, ok := v.Value(path)
	if s, isText := found.(string); isText {
		found, _, _ = row.DecodeJSON([]byte(s))
	}
	list, isList := found.([]any)
	return list, isList || !ok
}

// makeFinishReason makes "finish_reason" of the first of the reasons, one for each
// choice.
func makeFinishReason(v row.View) {
	const reasons, messages = "attributes.gen_ai.response.finish_reasons", "attributes.gen_ai.output.messages"
	found, _ := v.Value(reasons)
	list, _ := listAt(v, reasons)
	if len(list) > 0 {
		found = list[0]
	}
	if replies, _ := listAt(v, messages); found == nil && len(replies) > 0 {
		found, _ = row.Lookup(replies[0], "finish_reason")
	}
	switch reason := row.Plain(found); reason {
	case "":
		if told, _, ok := row.Find(v, []string{"attributes.llm.finish_reason", "attributes.ai.response.finishReason",
			"attributes.gen_ai.completion.0.finish_reason"}); ok {
			v.Put("finish_reason", told, "attributes")
		}
	case "tool_call": // as the conventions spell it
		v.Put("finish_reason", "tool_calls", "attributes")
	default:
		v.Put("finish_reason", reason, "attributes")
	}
}
