package datasets

import (
	"fmt"
	"strings"
	"testing"
)

// A testSpan is a span of a trace: of a call, where it has usage.
type testSpan struct {
	id, above     string
	operation     string // of the conventions: chat, invoke_agent, none
	input, output int
	answer        string
}

// spanWriters write a span in the formats that have them. Those that know no operation have
// spans of calls and others.
var spanWriters = map[string]func(s testSpan) string{
	"otel-genai": func(s testSpan) string {
		attributes := `"gen_ai.request.model":"m"`
		if s.operation != "" {
			attributes += `,"gen_ai.operation.name":"` + s.operation + `"`
		}
		if s.input > 0 {
			attributes += fmt.Sprintf(`,"gen_ai.usage.input_tokens":%d,"gen_ai.usage.output_tokens":%d`, s.input, s.output)
		}
		if s.answer != "" {
			attributes += `,"gen_ai.response.id":"` + s.answer + `"`
		}
		return fmt.Sprintf(`{"name":"x","context":{"trace_id":"t","span_id":%q},"parent_id":%q,"start_time":"2026-01-02T03:04:05.5Z","end_time":"2026-01-02T03:04:07Z","attributes":{%s}}`, s.id, s.above, attributes)
	},
	"langsmith": func(s testSpan) string {
		return fmt.Sprintf(`{"id":%q,"parent_run_id":%q,"trace_id":"t","run_type":%q,"start_time":"2026-01-02T03:04:05.1","end_time":"2026-01-02T03:04:07","prompt_tokens":%d,"completion_tokens":%d}`,
			s.id, s.above, map[bool]string{true: "llm", false: "chain"}[s.operation == "chat"], s.input, s.output)
	},
	"braintrust": func(s testSpan) string {
		return fmt.Sprintf(`{"id":%q,"span_id":%q,"span_parents":[%q],"root_span_id":"t","created":"2026-01-02T03:04:05Z","span_attributes":{"type":%q},"metrics":{"start":1767323045.1,"end":1767323047.0,"prompt_tokens":%d,"completion_tokens":%d}}`,
			s.id, s.id, s.above, map[bool]string{true: "llm", false: "task"}[s.operation == "chat"], s.input, s.output)
	},
	"mlflow": func(s testSpan) string {
		return fmt.Sprintf(`{"info":{"trace_id":"t"},"data":{"spans":[{"span_id":%q,"parent_id":%q,"name":"x","start_time_unix_nano":1767323045000000000,"end_time_unix_nano":1767323047000000000,"attributes":{`+
			`"mlflow.spanType":%q,"mlflow.chat.tokenUsage":"{\"input_tokens\":%d,\"output_tokens\":%d}"}}]}}`,
			s.id, s.above, map[bool]string{true: "CHAT_MODEL", false: "AGENT"}[s.operation == "chat"], s.input, s.output)
	},
	"langfuse": func(s testSpan) string {
		usage := ""
		if s.input > 0 {
			usage = fmt.Sprintf(`,"usage_details":{"input":%d,"output":%d}`, s.input, s.output)
		}
		return fmt.Sprintf(`{"id":%q,"parent_observation_id":%q,"trace_id":"t","type":%q,"start_time":"2026-01-02 03:04:05.5","end_time":"2026-01-02 03:04:07"%s}`,
			s.id, s.above, map[bool]string{true: "GENERATION", false: "SPAN"}[s.operation == "chat"], usage)
	},
}

// A call is counted once, in whatever order its spans come.
func TestSpansOfOneCall(t *testing.T) {
	for _, c := range []struct {
		name       string
		spans      []testSpan
		want       int // calls
		input      int // of all
		only       string
		unnamedToo bool
	}{
		{name: "a call", spans: []testSpan{{"a", "", "chat", 100, 10, ""}}, want: 1, input: 100},
		{name: "the same span twice", spans: []testSpan{{"a", "r", "chat", 100, 10, ""}, {"a", "r", "chat", 100, 10, ""}}, want: 1, input: 100},
		{name: "two calls alike", spans: []testSpan{{"a", "r", "chat", 100, 10, ""}, {"b", "r", "chat", 100, 10, ""}}, want: 2, input: 200},
		{name: "a layer around a layer", spans: []testSpan{{"a", "", "chat", 100, 10, ""}, {"b", "a", "chat", 100, 10, ""}}, want: 1, input: 100},
		{name: "layers with a span between", spans: []testSpan{{"a", "", "chat", 100, 10, ""}, {"s", "a", "other", 0, 0, ""}, {"b", "s", "chat", 100, 10, ""}}, want: 1, input: 100, only: "otel-genai langsmith braintrust mlflow langfuse"},
		{name: "a call within a call that is another", spans: []testSpan{{"a", "", "chat", 100, 10, ""}, {"b", "a", "chat", 50, 7, ""}}, want: 2, input: 150},
		{name: "a call that sums its calls", spans: []testSpan{{"a", "", "chat", 113, 11, ""}, {"b", "a", "chat", 56, 5, ""}, {"c", "a", "chat", 57, 6, ""}}, want: 2, input: 113},
		{name: "an agent that sums its calls", spans: []testSpan{{"a", "", "", 113, 11, ""}, {"b", "a", "chat", 56, 5, ""}, {"c", "a", "chat", 57, 6, ""}}, want: 2, input: 113, only: "otel-genai"},
		{name: "an agent whose sum leaves something out", spans: []testSpan{{"a", "", "run", 90, 11, ""}, {"b", "a", "chat", 56, 5, ""}, {"c", "a", "chat", 57, 7, ""}}, want: 2, input: 113, only: "otel-genai"},
		{name: "a layer of no operation", spans: []testSpan{{"a", "", "", 100, 10, ""}, {"b", "a", "generate_content", 100, 10, ""}}, want: 1, input: 100, only: "otel-genai"},
		{name: "three layers", spans: []testSpan{{"r", "", "", 200, 20, ""}, {"a", "r", "", 100, 10, ""}, {"b", "a", "chat", 100, 10, ""}, {"c", "r", "", 100, 10, ""}, {"d", "c", "chat", 100, 10, ""}}, want: 2, input: 200, only: "otel-genai"},
		{name: "an operation of another name", spans: []testSpan{{"a", "", "acompletion", 120, 40, ""}, {"b", "", "chat", 220, 40, ""}}, want: 2, input: 340, only: "otel-genai"},
		{name: "an operation without usage", spans: []testSpan{{"a", "", "plan", 0, 0, ""}, {"b", "a", "chat", 220, 40, ""}}, want: 1, input: 220, only: "otel-genai"},
		{name: "one answer under two ids", spans: []testSpan{{"a", "r", "chat", 100, 10, "resp"}, {"b", "r", "chat", 100, 10, "resp"}}, want: 1, input: 100, only: "otel-genai"},
	} {
		for format, write := range spanWriters {
			if c.only != "" && !strings.Contains(c.only, format) {
				continue
			}
			for _, backwards := range []bool{false, true} {
				lines := make([]string, len(c.spans))
				for i, s := range c.spans {
					if lines[i] = write(s); backwards {
						lines[i] = write(c.spans[len(c.spans)-1-i])
					}
				}
				all, info, err := read(strings.NewReader(strings.Join(lines, "\n")+"\n"), Options{Format: format})
				input := 0
				for i := range all {
					input += int(*all[i].InputTokens)
				}
				if err != nil || len(all) != c.want || input != c.input {
					t.Errorf("%s, %s, backwards %v: %d calls of %d tokens, want %d of %d (%v)\n%s", format, c.name, backwards, len(all), input, c.want, c.input, err, strings.Join(info.Notes, "\n"))
				}
			}
		}
	}
}

// An operation that is taken for its usage is named, and what is no plain name is not repeated.
func TestUnknownOperationIsNamed(t *testing.T) {
	one := func(operation string) string {
		return spanWriters["otel-genai"](testSpan{"a", "", operation, 100, 10, ""})
	}
	for operation, want := range map[string]string{"acompletion": "acompletion", "Secret 7": "another name"} {
		_, info := mustRead(t, one(operation), Options{})
		wantNote(t, info, fmt.Sprintf(noteUnknownSpans, want)+": 1")
	}
}
