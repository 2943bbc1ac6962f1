package datasets

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/row"
	"reprise/datasets/internal/sniff"
	"reprise/datasets/internal/talk"
	tokenusage "reprise/trace/usage"
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
	"kind":             {"kind_of_call"},
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

var langfuseTimes = row.Latencies{
	Start: []string{"start_time", "startTime"}, First: []string{"completion_start_time",
		"completionStartTime"}, End: []string{"end_time", "endTime"},
}

// langfuseMade is where [showLangfuse] takes what it makes from.
var langfuseMade = map[string]string{
	"tokens":      "",
	"max_tokens":  "model_parameters.max_completion_tokens|model_parameters.max_tokens|modelParameters.max_completion_tokens|modelParameters.max_tokens",
	"temperature": "model_parameters.temperature|modelParameters.temperature",
	"failed":      "level", "kind_of_call": "type", "e2e": "end_time|endTime",
	"ttft":          "completion_start_time|completionStartTime|time_to_first_token|timeToFirstToken",
	"text.messages": "input", "text.prompt": "input", "text.output": "output",
}

// langfuseFormat reads observations as Langfuse exports them: the download of a trace,
// answers of its API in both versions, and exports as CSV, Parquet, a JSON array or
// JSON lines. The rules:
//
//   - Observations of types GENERATION and EMBEDDING are calls of a model; the others
//     are left out. A generation around another one is the same call, recorded by a
//     framework and by the client below it: the inner one counts. Where observations
//     come one by one, see [spanCalls].
//   - Dates without a zone are UTC, as ClickHouse writes them.
//   - The types of usage add up: Langfuse takes each detail, such as
//     input_cached_tokens or output_reasoning_tokens, out of input and output when
//     it stores a usage of OpenAI's. So the length of the prompt is the sum of all
//     types of input, unless total shows that input holds the details already. What
//     older versions name prompt_details and completion_details is within input and
//     output.
//   - Without a session, the calls of one trace are taken as one.
//   - What the calls of a downloaded trace waited for is in [langfuseLinks].
func langfuseFormat() Format {
	detect := func(head *sniff.Sample) bool {
		return slices.ContainsFunc(head.Records(), func(r *sniff.Record) bool {
			v, _ := r.Value()
			kind, _ := row.Lookup(v, "type") // in capitals; spans of OpenTelemetry may have a type as well
			span := r.Has("attributes") && row.Plain(kind) != strings.ToUpper(row.Plain(kind))
			return r.Has("observations") && (r.Has("trace") || r.Has("id")) ||
				r.Has("type") && !span && (r.Has("start_time") && (r.Has("usage_details") || r.Has("trace_id")) ||
					r.Has("startTime") && (r.Has("usageDetails") || r.Has("traceId")))
		})
	}
	columns := sniff.Columns("type", "start_time", "usage_details")
	camel := sniff.Columns("type", "startTime", "usageDetails")
	return Format{
		reads: wholeTexts(mappedFields(langfuseFields, langfuseMade)),
		dated: true, labels: true,
		detect: func(head *sniff.Sample) bool { return detect(head) || columns(head) || camel(head) },
		open:   rowsOpener(openLangfuse).file,
	}.described("langfuse")
}

// hasLangfuse tells the columns of a Parquet export.
func hasLangfuse(has func(column string) bool) bool {
	return has("type") && has("start_time") && has("trace_id") && (has("usage_details") || has("parent_observation_id"))
}

func openLangfuse(all, first row.Reader, o Options, s *Source) (decoder, error) {
	links := &langfuseLinks{}
	observations := func(in row.Reader, tell *fault.Notes, links *langfuseLinks) row.Reader {
		inner := func(all []row.MemberRow) []row.MemberRow {
			calls := innerGenerations(slices.Clone(all), tell)
			links.link(all, calls)
			return calls
		}
		return &row.Members{In: keptRows{in}, Lists: [][]string{{"observations"}}, Settle: inner}
	}
	calls := func(in row.Reader, links *langfuseLinks, known *knownSpans, tell *fault.Notes) row.Reader {
		show := func(r row.Row, tell *fault.Notes) (row.Row, error) {
			shown, err := showLangfuse(r, tell)
			id, _, _ := observationOf(r)
			if v, ok := shown.(row.View); ok && links.of[id] != nil {
				v.Made[langfuseLink] = links.of[id]
			}
			return shown, err
		}
		spans := &spanCalls{in: observations(in, tell, links), show: show, of: langfuseSpan, known: known, tell: tell}
		return linkedRows{spans, links}
	}
	d, err := newMappedDecoder(calls(all, links, &s.spans, &s.notes),
		calls(first, new(langfuseLinks), &knownSpans{}, new(fault.Notes)), langfuseFields, o, s)
	if err != nil {
		return nil, err
	}
	d.timing = withTimes
	return &langfuseDecoder{d, links}, nil
}

// langfuseSpan says where an observation stands.
func langfuseSpan(r, _ row.Row) spanCall {
	trace, _, _ := row.Find(r, []string{"trace_id", "traceId"})
	id, above, _ := observationOf(r)
	return spanCall{trace: row.Plain(trace), id: id, above: above}
}

const (
	noteOtherObservations = "observations that are no calls of a model were left out"
	noteNoMessages        = "prompts that are not messages: only their lengths were read"
	noteOuterCalls        = "calls around another call were left out, as the same one recorded twice"
	noteEmptyCalls        = "calls with neither a prompt nor usage were left out"
)

// wantLangfuseFields is said where Langfuse left out what it was not asked for.
const wantLangfuseFields = "it has neither usage nor input: export it again with the field groups core, basic, time, " +
	"model, usage, metrics and io"

// innerGenerations leaves out the generations of one trace that have another one below.
func innerGenerations(all []row.MemberRow, tell *fault.Notes) []row.MemberRow {
	parents := map[string]string{}
	ids := make([]string, len(all)) // of generations
	for i, m := range all {
		id, parent, kind := observationOf(m)
		if parents[id] = parent; kind == "GENERATION" {
			ids[i] = id
		}
	}
	outer := map[string]bool{}
	for _, id := range ids {
		for id = parents[id]; id != "" && !outer[id]; id = parents[id] { // a circle ends too
			outer[id] = true
		}
	}
	inner := all[:0]
	for i, m := range all {
		if ids[i] != "" && outer[ids[i]] {
			tell.Count(noteOuterCalls)
		} else {
			inner = append(inner, m)
		}
	}
	return inner
}

// observationOf returns what tells an observation and the one around it.
func observationOf(r row.Row) (id, parent, kind string) {
	v, _ := r.Value("id")
	up, _, _ := row.Find(r, []string{"parent_observation_id", "parentObservationId"})
	of, _ := r.Value("type")
	return row.Plain(v), row.Plain(up), strings.ToUpper(row.Plain(of))
}

func showLangfuse(r row.Row, tell *fault.Notes) (row.Row, error) {
	v := row.NewView(r)
	switch _, _, kind := observationOf(r); kind {
	case "GENERATION":
	case "EMBEDDING":
		v.Put("kind_of_call", "embedding", "type")
	default:
		tell.Count(noteOtherObservations)
		return nil, nil
	}
	for _, name := range []string{"usage_details", "usageDetails", "usage", "model_parameters", "modelParameters"} {
		if !v.Unpack(name) {
			return nil, row.BadAt(r, name, name+": want JSON")
		}
	}
	if in, ok := r.(row.MemberRow); ok { // what a trace says of all its observations
		for _, name := range [][2]string{{"session_id", "sessionId"}, {"user_id", "userId"}} {
			of, _, found := row.Find(in.Row, []string{"trace." + name[1], "trace." + name[0], name[1], name[0]})
			if found && !row.HasAny(r, name[0], name[1]) {
				v.Made[name[0]] = of
			}
		}
	}
	v.PutLatencies(langfuseTimes, 0, tell)
	firstTokenOf(v, "time_to_first_token", "timeToFirstToken")
	if level, _ := r.Value("level"); row.Plain(level) == "ERROR" {
		v.Put("failed", true, "level")
	}
	if err := langfuseTokens(v, tell); err != nil {
		return nil, err
	}
	// The SDKs write inf and words for parameters that were not set: only numbers
	// are taken.
	found, origin, _ := row.Find(v, []string{"model_parameters", "modelParameters"})
	parameters, _ := found.(map[string]any)
	for _, name := range []string{"max_completion_tokens", "max_tokens"} {
		if _, ok := countOf(row.Plain(parameters[name])); ok {
			v.Put("max_tokens", parameters[name], origin)
		}
	}
	if t := parameters["temperature"]; setTemperature(&builder{}, t) == "" {
		v.Put("temperature", t, origin)
	}
	langfuseText(v, tell)
	switch {
	case row.HasAny(v, "tokens.input", "text.messages", "text.prompt"):
		return v, nil
	case row.HasAny(v, "failed"):
		tell.Count(noteFailedSpans)
	case row.HasAny(v, "usage_details", "usageDetails", "usage", "input"):
		tell.Count(noteEmptyCalls)
	default:
		return nil, row.BadAt(r, "", wantLangfuseFields)
	}
	return nil, nil
}

// firstTokenOf makes "ttft" of a length of time whose unit is that of the latency
// beside it, which the start and the end tell: exports have seconds or milliseconds.
func firstTokenOf(v row.View, names ...string) {
	ttft, origin, ok := row.Find(v, names)
	latency, hasLatency := v.Value("latency")
	made, ended := v.Made["e2e"]
	if _, seen := v.Made["ttft"]; seen || !ok || !hasLatency || !ended {
		return
	}
	length, err := strconv.ParseFloat(row.Plain(latency), 64)
	first, err2 := strconv.ParseFloat(row.Plain(ttft), 64)
	e2e, err3 := strconv.ParseFloat(row.Plain(made), 64) // in ns
	if err != nil || err2 != nil || err3 != nil || !(first >= 0) || !(first < length) {
		return
	}
	for _, unit := range []time.Duration{time.Second, time.Millisecond} {
		if ns := length * float64(unit); ns > 0.99*e2e-2e6 && ns < 1.01*e2e+2e6 && e2e > 1e7 {
			v.Put("ttft", row.Integer(int64(first*float64(unit))), origin)
			return
		}
	}
}

// langfuseTokens makes "tokens" of the types of usage. Which of them are there
// is the choice of whoever logged them.
func langfuseTokens(v row.View, tell *fault.Notes) error {
	found, origin, _ := row.Find(v, []string{"usage_details", "usageDetails", "usage"})
	usage, _ := found.(map[string]any)
	if unit := row.Plain(usage["unit"]); unit != "" && unit != "TOKENS" {
		return nil // characters, seconds or images
	}
	counts := tokenusage.GatherParts(usage)
	t, noted, err := counts.Settle(tokenusage.Inclusive)
	if err != nil {
		line, col := v.Place(origin)
		return fault.Bad(line, col, err.Error())
	}
	noteFindings(noted, tell)
	putTokens(v, t, origin)
	return nil
}

// langfuseText makes "text" of the input and the output, which may be anything.
func langfuseText(v row.View, tell *fault.Notes) {
	v.Unpack("input") // a plain text is none
	v.Unpack("output")
	text := map[string]any{}
	v.Made["text"] = text
	v.From["text.messages"], v.From["text.prompt"], v.From["text.output"] = "input", "input", "output"
	input, _ := v.Value("input")
	switch messages, prompt := talk.ChatOf(input); {
	case messages != nil:
		text["messages"] = messages
	case row.IsString(input):
		text["prompt"] = input
	case prompt != "":
		text["prompt"] = prompt
	case input != nil:
		tell.Count(noteNoMessages)
	}
	output, _ := v.Value("output")
	if messages, answer := talk.ChatOf(output); messages != nil {
		text["output"] = messages[len(messages)-1]
	} else if answer != "" {
		text["output"] = answer
	}
}
