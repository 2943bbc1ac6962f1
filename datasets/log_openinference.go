package datasets

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"reprise/datasets/internal/row"
	"reprise/datasets/internal/talk"
)

// inferenceReads is what is read of OpenInference's attributes, those of Phoenix, beside
// what spans have in common; they stand flat, nested, or as columns.
var inferenceReads = []SourceField{
	wholeField("attributes.llm.input_messages|attributes.gen_ai.prompt", "input_tokens blocks images kind"),
	wholeField("attributes.llm.output_messages|attributes.gen_ai.completion", "output_tokens output_blocks"),
	wholeField("attributes.llm.tools", "input_tokens blocks"),
	fieldAt("attributes.llm.invocation_parameters", "max_tokens temperature", packed),
	fieldAt("attributes.openinference.span.kind|span_kind|attributes.ai.operationId", "", decides),
	fieldAt("events[].name|events[].attributes", "", "messages that a span has as an event, and the first token"),
	fieldAt("events[].timeUnixNano|events[].time_unix_nano|events[].timestamp|events[].time", "ttft_ns", ""),
	fieldAt("session_id", "session turn parents", ""),
	fieldAt(strings.Join(slices.Concat(spanTraces, spanIDs, spanParents), "|")+"|attributes.gen_ai.response.id", "",
		"tells a call that was recorded twice; not kept"),
}

func wholeField(paths, columns string) SourceField {
	f := fieldAt(paths, columns, tokenised)
	f.whole = true
	return f
}

// hasOpenInference tells the columns of Phoenix's data frames.
func hasOpenInference(has func(column string) bool) bool {
	return has("attributes.openinference.span.kind") || has("attributes.llm.token_count.prompt") && has("start_time")
}

// spanAttributes puts the attributes of a span at "attributes": those of OTLP by their
// keys, those of columns of their own, and those of the event that holds the messages.
func spanAttributes(v row.View) {
	found, at, _ := row.Find(v.Row, []string{"attributes", "tags"}) // the latter of Jaeger
	attributes, _ := found.(map[string]any)
	if list, ok := found.([]any); ok {
		attributes = plainAttributes(list)
		v.AdmitAt(at, attributes)
		v.Put("attributes", attributes, at)
	}
	took, _ := v.Row.Value("duration")
	if microseconds, ok := countOf(row.Plain(took)); ok && at == "tags" {
		v.Put("e2e", row.Integer(1000*int64(microseconds)), "duration")
	}
	if columns := topOf(v.Row); found == nil && columns != nil {
		attributes = map[string]any{}
		for name, value := range columns {
			if rest, ok := strings.CutPrefix(name, "attributes."); ok {
				attributes[rest] = value
			}
		}
		v.Put("attributes", attributes, "")
	}
	events, _ := v.Row.Value("events")
	list, _ := events.([]any)
	for i, event := range list {
		name, _ := row.Lookup(event, "name")
		switch {
		case row.Plain(name) == "First Token Stream Event":
			for _, at := range []string{"timeUnixNano", "time_unix_nano", "timestamp", "time"} {
				if t, ok := row.Lookup(event, at); ok {
					v.Put("first_token_at", t, "events."+strconv.Itoa(i)+"."+at)
				}
			}
		case row.Plain(name) == "gen_ai.client.inference.operation.details" && attributes != nil:
			of, _ := row.Lookup(event, "attributes")
			if pairs, ok := of.([]any); ok {
				of = plainAttributes(pairs)
			}
			fields, _ := of.(map[string]any)
			for key, value := range fields {
				if _, ok := attributes[key]; !ok && strings.HasPrefix(key, "gen_ai.") &&
					strings.HasSuffix(key, "messages") {
					attributes[key] = value
				}
			}
		}
	}
}

// topOf returns the fields at the top of a record, where it has them as an object.
func topOf(r row.Row) map[string]any {
	switch r := r.(type) {
	case row.JSONRow:
		return r.Root
	case row.ParquetRow:
		return r.Root
	case row.MemberRow:
		fields, _ := r.Member.(map[string]any)
		return fields
	}
	return nil
}

// inferenceMessages makes "messages", "output" and "tools" of attributes that are numbered,
// as OpenInference has them and OpenLLMetry had them.
func inferenceMessages(v row.View) {
	found, _ := v.Value("attributes")
	attributes, _ := found.(map[string]any)
	for to, names := range map[string][]string{
		"messages": {"llm.input_messages", "gen_ai.prompt"},
		"output":   {"llm.output_messages", "gen_ai.completion"},
	} {
		for _, name := range names {
			var messages []any
			for _, item := range numbered(attributes, name) {
				if message := inferenceMessage(item); message != nil {
					messages = append(messages, message)
				}
			}
			switch {
			case !talk.AreMessages(messages) || row.HasAny(v, to):
			case to == "output":
				v.Put(to, messages[0], "attributes")
			default:
				v.Put(to, messages, "attributes")
			}
		}
	}
	var tools []any
	for _, item := range numbered(attributes, "llm.tools") {
		schema, _ := row.Lookup(item, "tool.json_schema")
		if text, ok := schema.(string); ok {
			schema, _, _ = row.DecodeJSON([]byte(text))
		}
		if _, ok := schema.(map[string]any); ok {
			tools = append(tools, schema)
		}
	}
	if tools != nil && !row.HasAny(v, otelFields["tools"]...) {
		v.Put("tools", tools, "attributes")
	}
	asked, _ := row.Lookup(attributes, "llm.invocation_parameters")
	if text, ok := asked.(string); ok {
		asked, _, _ = row.DecodeJSON([]byte(text))
	}
	for to, names := range map[string][]string{"asked_max_tokens": {"max_completion_tokens", "max_tokens"},
		"asked_temperature": {"temperature"}} {
		for _, name := range names {
			value, ok := row.Lookup(asked, name)
			_, isCount := countOf(row.Plain(value))
			if ok && (isCount || to == "asked_temperature" && setTemperature(&builder{}, value) == "") {
				v.Put(to, value, "attributes")
			}
		}
	}
}

// maxNumbered bounds a list that numbered keys make: they may be made of data.
const maxNumbered = 1 << 16

// numbered returns a list that stands as such, or as keys with numbers, such as
// llm.input_messages.0.message.role. The members then have what is behind the number.
func numbered(fields map[string]any, name string) []any {
	if found, _ := row.Lookup(fields, name); found != nil {
		list, _ := found.([]any)
		return list
	}
	byPlace := map[int]map[string]any{}
	for key, value := range fields {
		rest, ok := strings.CutPrefix(key, name+".")
		place, below, _ := strings.Cut(rest, ".")
		i, err := strconv.Atoi(place)
		if !ok || err != nil || i < 0 || i >= maxNumbered {
			continue
		}
		if byPlace[i] == nil {
			byPlace[i] = map[string]any{}
		}
		byPlace[i][below] = value
	}
	list := make([]any, 0, len(byPlace))
	for _, i := range slices.Sorted(maps.Keys(byPlace)) {
		list = append(list, byPlace[i])
	}
	return list
}

// inferenceMessage makes a message of a member of such a list; nil where it is none.
func inferenceMessage(item any) any {
	fields, _ := item.(map[string]any)
	at := func(name string) any {
		if found, ok := row.Lookup(fields, "message."+name); ok {
			return found
		}
		found, _ := row.Lookup(fields, name)
		return found
	}
	list := func(name string) []any {
		if out := numbered(fields, "message."+name); out != nil {
			return out
		}
		return numbered(fields, name)
	}
	message := map[string]any{"role": at("role"), "content": at("content"), "tool_call_id": at("tool_call_id"),
		"name": at("name")}
	var parts, calls []any
	for _, part := range list("contents") {
		kind, _ := row.Lookup(part, "message_content.type")
		text, _ := row.Lookup(part, "message_content.text")
		parts = append(parts, map[string]any{"type": kind, "text": text})
	}
	if message["content"] == nil && parts != nil {
		message["content"] = parts
	}
	for _, call := range list("tool_calls") {
		found := map[string]any{}
		for to, paths := range map[string][]string{"id": {"tool_call.id", "id"},
			"name": {"tool_call.function.name", "name"}, "arguments": {"tool_call.function.arguments", "arguments"}} {
			for _, path := range paths {
				if value, ok := row.Lookup(call, path); ok && found[to] == nil {
					found[to] = value
				}
			}
		}
		calls = append(calls, found)
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	return talk.MessageOf(message)
}
