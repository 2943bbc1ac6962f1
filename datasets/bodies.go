package datasets

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"reprise/datasets/internal/row"
	"reprise/datasets/internal/talk"
	"reprise/trace"
)

// bodyAt is the key of a [Mapping] under which formats say where the bodies of requests to
// OpenAI's chats and completions are, for [Options.Bodies], or [wholeRecord]. It is no
// target: a --map does not name it.
const bodyAt = "\x00body"

// keptApart are the members of a body that entries have fields for, and those that are a
// replay's to say.
var keptApart = []string{"model", "messages", "prompt", "input", "tools", "functions", "stream", "stream_options"}

// bodyMembers are the members of a body that is mixed with those of its log record.
var bodyMembers = []string{
	"max_tokens", "max_completion_tokens", "min_tokens", "temperature", "top_p", "top_k", "min_p", "n", "best_of",
	"stop", "stop_token_ids", "seed",
	"tool_choice", "parallel_tool_calls", "function_call", "response_format", "presence_penalty", "frequency_penalty",
	"repetition_penalty",
	"logit_bias", "logprobs", "top_logprobs", "prompt_logprobs", "echo", "suffix", "ignore_eos", "skip_special_tokens",
	"spaces_between_special_tokens",
	"include_stop_str_in_output", "guided_json", "guided_regex", "guided_choice", "guided_grammar",
	"structured_outputs", "regex", "ebnf", "grammar", "json_schema",
	"chat_template_kwargs", "add_generation_prompt", "continue_final_message", "reasoning_effort", "reasoning",
	"thinking", "verbosity", "modalities", "prediction",
	"bad_words", "use_beam_search", "length_penalty", "truncate_prompt_tokens", "priority",
}

// knownMembers says that a gateway has members of its own in what it keeps of a body, of keys and
// budgets, which no engine is to get: only [bodyMembers] are taken.
const knownMembers = "+"

// wholeRecord says that a body is mixed with the members of its log record.
const wholeRecord = "*"

// askedChat is the body of a request to OpenAI's chats or completions in a view of a record.
const askedChat = "chat_body"

// putChatBody shows what stands at a path of the view as such a body, if it is one.
func putChatBody(v row.View, at, origin string) {
	body, _ := v.Value(at)
	if fields, ok := body.(map[string]any); ok && (fields["messages"] != nil || fields["prompt"] != nil) {
		v.Put(askedChat, body, origin)
	}
}

// otherMembers are the members of the body of a row's request that entries have no field for,
// as a JSON object; empty where the row has no such body.
func otherMembers(r row.Row, at []string) trace.Text {
	members := map[string]json.RawMessage{}
	if slices.Contains(at, wholeRecord) {
		for _, name := range bodyMembers {
			if v, ok := r.Value(name); ok {
				members[name] = writtenValue(r, name, v)
			}
		}
		if len(members) == 0 { // what the request asked for beside its input is not known, or it is a file of prompts
			return trace.Text{}
		}
	} else {
		v, path, ok := row.Find(r, at)
		if !ok || json.Unmarshal(writtenValue(r, path, v), &members) != nil {
			return trace.Text{}
		}
		if slices.Contains(at, knownMembers) {
			maps.DeleteFunc(members, func(name string, v json.RawMessage) bool {
				return !slices.Contains(bodyMembers, name) || string(v) == "null"
			})
		}
	}
	var out []byte
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if slices.Contains(keptApart, name) || !json.Valid(members[name]) {
			continue
		}
		if len(out) > 0 {
			out = append(out, ',')
		}
		key, _ := json.Marshal(name)
		out = append(append(append(out, key...), ':'), members[name]...)
	}
	return trace.NewText("{" + string(out) + "}")
}

// writtenValue is a value as the source has it, with its order of keys, where that is at hand. A
// string that holds an object is that object.
func writtenValue(r row.Row, path string, v any) json.RawMessage {
	if w, ok := r.(row.WrittenRow); ok {
		if text := w.Written(path); json.Valid(text) && len(text) > 0 && text[0] != '"' {
			return text
		}
	}
	if text, isText := v.(string); isText && strings.HasPrefix(strings.TrimSpace(text), "{") &&
		json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	text, _ := talk.Compact(v)
	return json.RawMessage(text)
}
