package datasets

import (
	"slices"
	"strings"
	"time"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/row"
	"reprise/datasets/internal/sniff"
	"reprise/datasets/internal/talk"
	"reprise/trace"
	tokenusage "reprise/trace/usage"
)

// openAILogFields is where a log of OpenAI-style requests has its fields, in
// the words of --map. Gateways differ in the names; what OpenAI's API names is
// as there, and a response may be nested or not. A --map with this format
// overrides a target.
var openAILogFields = []string{
	"time=timestamp|time|created_at|created|ts",
	"user=user",
	"session=session_id|conversation_id|session",
	"model=model",
	"salt=cache_salt",
	"prefix_key=system_prompt_id|prompt_cache_key",
	"messages=messages",
	"tools=tools|functions",
	"prompt=prompt|question|query",
	"max_tokens=max_completion_tokens|max_tokens",
	"temperature=temperature",
	"stream=stream",
	"output=response.choices.0.message|response.choices.0.text|choices.0.message|choices.0.text|output|response|completion",
	"finish_reason=response.choices.0.finish_reason|choices.0.finish_reason|finish_reason",
	"input_tokens=usage.prompt_tokens|usage.input_tokens|response.usage.prompt_tokens|response.usage.input_tokens|" +
		"prompt_tokens_count|input_tokens_count|prompt_tokens|input_tokens",
	"output_tokens=usage.completion_tokens|usage.output_tokens|response.usage.completion_tokens|response.usage.output_tokens|" +
		"output_tokens_count|completion_tokens|output_tokens|target_output_tokens",
	"cached_tokens=usage.prompt_tokens_details.cached_tokens|usage.input_tokens_details.cached_tokens|usage.cache_read_input_tokens|" +
		"response.usage.prompt_tokens_details.cached_tokens|response.usage.input_tokens_details.cached_tokens|response.usage.cache_read_input_tokens",
	"reasoning_tokens=usage.completion_tokens_details.reasoning_tokens|usage.output_tokens_details.reasoning_tokens|" +
		"response.usage.completion_tokens_details.reasoning_tokens|response.usage.output_tokens_details.reasoning_tokens",
	"status=status|status_code",
	"error=error|response.error",
	"ttft_ms=ttft_ms",
	"e2e_ms=latency_ms|e2e_ms",
}

// openAILogMapping is the same as a mapping.
func openAILogMapping() Mapping {
	m := Mapping{}
	for _, spec := range openAILogFields {
		target, paths, _ := strings.Cut(spec, "=")
		m[target] = strings.Split(paths, "|")
	}
	m[bodyAt] = []string{wholeRecord}
	return m
}

// openAILogUsage is where the usage objects of a log are.
var openAILogUsage = []string{"usage", "response.usage"}

// openAILogFormat reads JSON lines that carry the messages or the prompt of a
// request to an OpenAI-compatible endpoint, as gateways log them.
func openAILogFormat() Format {
	return Format{
		timed: true, mapped: true, dated: true, base: openAILogMapping, bodies: bodyMembers,
		reads: append(usageReads(nil, openAILogUsage), fieldAt(toolDelay, "tool_ns", ""),
			fieldAt("system|instructions|system_prompt", "input_tokens blocks", tokenised)),
		detect: func(head *sniff.Sample) bool { return hasPrompt(head) && !hidesFields(head) },
		open:   rowsOpener(openOpenAILog).json,
	}.described("openai-log")
}

// openOpenAILog reads the usage of any provider. What a --map names stays as it is.
func openOpenAILog(all, first row.Reader, o Options, s *Source) (decoder, error) {
	counts := newUsageReader(tokenusage.Body, openAILogUsage, nil, o)
	at := openAILogMapping()
	show := func(in row.Reader, tell *fault.Notes) row.Views {
		waits := map[string]any{} // of sessions, before their next requests
		view := func(r row.Row, tell *fault.Notes) (row.Row, error) {
			v := row.NewView(r)
			showRequest(v, at, waits, tell)
			return v, counts.show(v, tell)
		}
		return row.Views{In: &row.Members{In: in, Lists: [][]string{{"payloads"}}}, Show: view, Tell: tell}
	}
	read := o.Map.over(at.withUsage()).dotted()
	d, err := newMappedDecoder(show(all, &s.notes), show(first, new(fault.Notes)), read, o, s)
	if err != nil {
		return nil, err
	}
	setWait := durationTo(time.Millisecond, func(b *builder) **time.Duration { return &b.Entry.Tool })
	d.fields = append(d.fields, field{target: target{name: "tool_wait_ms", set: setWait}, paths: []string{"tool_wait"}})
	return d, nil
}

// showRequest shows the session of a request, what it waits for and its messages. waits are those of
// sessions, which the request before has told; at is where the format has its fields.
func showRequest(v row.View, at Mapping, waits map[string]any, tell *fault.Notes) {
	if in, ok := v.Row.(row.MemberRow); ok { // of AIPerf's inputs, whose session is that of all
		session, _ := in.Row.Value("session_id")
		v.Made["session_id"] = session
	}
	found, _, _ := row.Find(v, at["session"])
	session := row.Plain(found)
	if wait := waits[session]; wait != nil {
		v.Made["tool_wait"] = wait
	}
	delete(waits, session)
	if wait, ok := v.Value(toolDelay); ok && session != "" {
		waits[session] = wait
	}
	showMessages(v, at, tell)
}

// toolDelay is how long the tools took that an answer called, in AgentPerf's recordings: the next
// request of the session waits for them.
const toolDelay = "simulated_tool_delay_ms_after"

var hasPrompt = sniff.Objects(func(has func(string) bool) bool {
	return has("messages") || has("prompt") || has("payloads") || has("question") || has("query")
})

// hidesFields reports whether records have a time or counts under names that are not those of this
// format. What a prompt beside them would hide is then proposed for --map.
func hidesFields(head *sniff.Sample) bool {
	read := openAILogMapping()
	named := []string{"time", "input_tokens", "output_tokens"}
	lacking := slices.DeleteFunc(named, func(target string) bool {
		paths := read[target]
		if target != "time" {
			paths = slices.Concat(openAILogUsage, paths)
		}
		return slices.ContainsFunc(head.Records(), func(r *sniff.Record) bool {
			v, _ := r.Value()
			return slices.ContainsFunc(paths, func(path string) bool {
				_, ok := row.Lookup(v, path)
				return ok
			})
		})
	})
	if len(lacking) == 0 {
		return false
	}
	return slices.ContainsFunc(lacking, inspectHead(head.Bytes, Options{}).has)
}

const noteLastAnswer = "records whose messages end with the answer, which was taken as the output"

// showMessages puts a system prompt that stands beside the messages, or beside a prompt, before them. The
// prompt may be a list of messages. An answer that ends the messages of a record that has no other is taken
// out of them; in the body of a request it is what the answer is to begin with.
func showMessages(v row.View, at Mapping, tell *fault.Notes) {
	found, from, _ := row.Find(v.Row, append([]string{"messages"}, at["prompt"]...))
	if row.IsString(found) && from != "messages" {
		found = []any{map[string]any{"role": "user", "content": found}}
	}
	list, _ := found.([]any)
	if !talk.AreMessages(list) {
		return
	}
	prompt, _ := v.Row.Value(from)
	changed := from != "messages" && !row.IsString(prompt)
	last, _ := list[len(list)-1].(map[string]any)
	answers := row.HasAny(v, at["output"]...)
	if role, _ := trace.RoleOf(row.Plain(last["role"])); role == trace.Assistant && len(list) > 1 && !answers &&
		!row.HasAny(v, bodyKeys...) {
		v.Put("output", last, from)
		list, changed = list[:len(list)-1], true
		tell.Count(noteLastAnswer)
	}
	for _, key := range []string{"system", "instructions", "system_prompt"} {
		system, _ := v.Row.Value(key)
		_, parts := system.([]any)
		first, _ := list[0].(map[string]any)
		text := strings.TrimSpace(row.Plain(system)) // a system of one word is a name of something
		if (parts || strings.ContainsAny(text, " \n") || key == "system_prompt" && text != "") &&
			row.Plain(first["role"]) != "system" {
			list, changed = append([]any{map[string]any{"role": "system", "content": system}}, list...), true
		}
	}
	if changed {
		v.Put("messages", list, from)
	}
}

// bodyKeys are members of the body of a request, beside its messages.
var bodyKeys = wordsOf("max_tokens max_completion_tokens temperature top_p stream stop seed tool_choice " +
	"response_format n")
