package datasets

import (
	"strings"
	"testing"
)

// Data sets of whole chats have many forms. In each the answers are outputs, and all before an
// answer is its prompt.
func TestFormsOfChats(t *testing.T) {
	const once = `user:"a" reply="b" chat`
	for name, c := range map[string]struct{ format, in, want string }{
		"fine-tuning": {"chats", `{"messages":[{"role":"system","content":"s"},{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"},{"role":"assistant","content":"d"}]}`,
			`system:"s" user:"a" reply="b" chat|system:"s" user:"a" assistant:"b" user:"c" reply="d" chat`},
		"with the prompt beside": {"chats", `{"prompt":"a","prompt_id":"p","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}],"score":1}`, once},
		"content in parts":       {"chats", `{"messages":[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":"b"}]}`, once},
		"one is a question":      {"chats", `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}` + "\n" + `{"messages":[{"role":"user","content":"c"}]}`, once},
		"calls of tools": {"chats", `{"tools":[{"type":"function","function":{"name":"f"}}],"messages":[{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},` +
			`{"role":"tool","tool_call_id":"1","content":"r"},{"role":"assistant","content":"b"}]}`,
			`tools=[{"type":"function","function":{"name":"f"}}] user:"a" reply="" replycalls=[{"function":{"arguments":"{}","name":"f"},"id":"1","type":"function"}] chat|` +
				`tools=[{"type":"function","function":{"name":"f"}}] user:"a" assistant:"" calls=[{"function":{"arguments":"{}","name":"f"},"id":"1","type":"function"}] tool:"r" reply="b" chat`},
		"Swift's roles": {"chats", `{"messages":[{"role":"user","content":"a"},{"role":"tool_call","content":"{\"name\":\"f\",\"arguments\":{}}"},{"role":"tool_response","content":"r"},{"role":"assistant","content":"b"}]}`,
			`user:"a" reply="" replycalls=[{"function":{"arguments":{},"name":"f"},"type":"function"}] chat|` +
				`user:"a" assistant:"" calls=[{"function":{"arguments":{},"name":"f"},"type":"function"}] tool:"r" reply="b" chat`},
		"LLaMA-Factory": {"sharegpt", `[{"conversations":[{"from":"human","value":"a"},{"from":"function_call","value":"no JSON"},{"from":"observation","value":"r"},{"from":"gpt","value":"b"}],"system":"s","tools":"[]"}]`,
			`system:"s" user:"a" reply="no JSON" chat|system:"s" user:"a" assistant:"no JSON" tool:"r" reply="b" chat`},
		"tools as text":              {"sharegpt", `[{"conversations":[{"from":"human","value":"a"},{"from":"gpt","value":"b"}],"system":"","tools":"[{\"name\":\"f\"}]"}]`, `tools=[{"type":"function","function":{"name":"f"}}] ` + once},
		"lists of turns":             {"chats", `[[{"from":"human","value":"a"},{"from":"gpt","value":"b"}],[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]]`, once + "|" + once},
		"a list a line":              {"chats", `[{"from":"human","value":"a"},{"from":"gpt","value":"b"}]` + "\n" + `[{"from":"human","value":"a"},{"from":"gpt","value":"b"}]`, once + "|" + once},
		"lists of texts":             {"chats", `[["a","b","c","d"],["a","b"]]`, once + `|user:"a" assistant:"b" user:"c" reply="d" chat|` + once},
		"lists of pairs":             {"chats", `[[["a","b"],["c","d"]]]`, once + `|user:"a" assistant:"b" user:"c" reply="d" chat`},
		"pairs":                      {"chats", `{"human":"a","assistant":"b"}`, once},
		"instructions":               {"chats", `[{"instruction":"a","input":"","output":"b"},{"instruction":"a","input":"c","output":"b","history":[["e","f"]],"system":"s"}]`, once + `|system:"s" user:"e" reply="f" chat|system:"s" user:"e" assistant:"f" user:"a\n\nc" reply="b" chat`},
		"Dolly":                      {"chats", `{"instruction":"a","context":"c","response":"b","category":"qa"}`, `user:"a\n\nc" reply="b" chat`},
		"pairs of a chat":            {"sharegpt", `{"conversation_id":"1","conversation":[{"human":"a","assistant":"b"},{"human":"c","assistant":"d"}]}`, once + `|user:"a" assistant:"b" user:"c" reply="d" chat`},
		"pairs with a system prompt": {"sharegpt", `{"conversation":[{"system":"s","input":"a","output":"b"}]}`, `system:"s" ` + once},
		"one chat":                   {"chats", `[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]`, once},
		"rows of messages": {"chats", `{"conversation_id":"x","turn":1,"role":"user","content":"a","system":"s"}` + "\n" + `{"conversation_id":"x","turn":2,"role":"assistant","content":"b"}` + "\n" +
			`{"conversation_id":"y","turn":2,"role":"assistant","content":"b"}` + "\n" + `{"conversation_id":"y","turn":1,"role":"user","content":"a"}`,
			`system:"s" ` + once + "|" + once},
		"rows with tools": {"chats", `{"conversation_id":"x","turn":1,"role":"user","content":"a"}` + "\n" +
			`{"conversation_id":"x","turn":2,"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]}` + "\n" +
			`{"conversation_id":"x","turn":3,"role":"tool","tool_results":[{"tool_call_id":"1","content":"r"},{"tool_call_id":"2","content":"t"}]}` + "\n" + `{"conversation_id":"x","turn":4,"role":"assistant","content":"b"}`,
			`user:"a" reply="" replycalls=[{"function":{"arguments":"{}","name":"f"},"id":"1","type":"function"}] chat|` +
				`user:"a" assistant:"" calls=[{"function":{"arguments":"{}","name":"f"},"id":"1","type":"function"}] tool:"r" tool:"t" reply="b" chat`},
		"snapshots": {"chats", `{"conversation_id":"x","conversation_idx":1,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}],"metadata":{}}` + "\n" +
			`{"conversation_id":"x","conversation_idx":3,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"},{"role":"assistant","content":"d"}],"metadata":{}}`,
			once + `|user:"a" assistant:"b" user:"c" reply="d" chat`},
		"rounds": {"chats", `{"metadata":{"seed":1},"conversations":[[{"messages":[{"role":"system","content":"s"},{"role":"user","content":"a"}],"prompt_tokens":30},{"messages":[{"role":"user","content":"c"}],"prompt_tokens":50}]]}`,
			`system:"s" user:"a" in=30 chat|system:"s" user:"a" user:"c" in=50 chat`},
	} {
		for _, o := range []Options{{}, {Format: c.format}} {
			all, info, err := read(strings.NewReader(c.in), o)
			var got []string
			for i := range all {
				got = append(got, textOf(summary(&all[i])))
			}
			if s := strings.Join(got, "|"); err != nil || s != c.want || info.Format != c.format {
				t.Errorf("%s: %s, %v\n  %s\n  want %s", name, info.Format, err, s, c.want)
			}
		}
	}
}

// textOf is a summary without the session and the place in it.
func textOf(summary string) string {
	fields := strings.SplitAfter(summary, "] ")
	if strings.HasPrefix(summary, "session=") && strings.Contains(fields[0], " after=") {
		return strings.Join(fields[1:], "")
	}
	return summary
}

// Bodies of requests are no chats, though an answer may end their messages.
func TestRequestsAreNoChats(t *testing.T) {
	const messages = `"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]`
	for _, in := range []string{
		`{"model":"m",` + messages + `,"max_tokens":9}`,
		`{` + messages + `,"temperature":0}`,
		`{"timestamp":"2026-01-02T03:04:05Z",` + messages + `}`,
		`{` + messages + `,"usage":{"prompt_tokens":9}}`,
		`{` + messages + `,"response":"c"}`,
		`{"messages":[{"role":"user","content":"a"}]}`,
		`{` + messages + `}` + "\n" + `{` + messages + `,"usage":{"prompt_tokens":9}}`,
	} {
		if f, err := detectFormat([]byte(in)); err != nil || f.Name != "openai-log" {
			t.Errorf("%s is taken for %s, %v", in, f.Name, err)
		}
	}
}
