package datasets

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/trace"
)

// marker stands in seeds where secrets would; no error may repeat it.
const marker = "zqxSECRETzqx"

// nearField is the end of a note that names a field of the log, as --inspect names them all, where
// somebody misspelt it in a mapping. It names no value.
var nearField = regexp.MustCompile(`(?m)^(no record has the field .*); did you mean ".*"\?$`)

// fuzz reads in and holds what is true of every input: no panic, errors of the
// input that are located and silent about it, whole entries, and the same
// result from one reading to the next.
func fuzz(t *testing.T, in []byte, o Options) {
	t.Helper()
	in = bytes.ReplaceAll(in, []byte("MARK"), []byte(marker))
	o.MaxBad = 1
	all, info, err := read(bytes.NewReader(in), o)
	for _, e := range append(info.FirstBad, asSourceError(err)) {
		if e == nil {
			continue
		}
		if strings.Contains(e.Error(), marker) || strings.Contains(fmt.Sprintf("%+v %#v", e, e), marker) {
			t.Fatal("an error repeats the input")
		}
		if e.File != "log" || e.Line < 1 || e.Column < 1 || e.Reason == "" {
			t.Fatalf("an error has no place: %#v", e)
		}
	}
	if err != nil && asSourceError(err) == nil {
		t.Fatalf("an error that is no fault of the input: %v", err)
	}
	notes := nearField.ReplaceAllString(strings.Join(info.Notes, "\n"), "")
	if strings.Contains(notes, marker) || strings.Contains(fmt.Sprintf("%+v", all), marker) {
		t.Fatal("the notes or the entries show the input")
	}
	for i := range all {
		checkEntry(t, &all[i], int64(i), &info)
	}
	again, _, _ := read(io.MultiReader(bytes.NewReader(in[:len(in)/2]), bytes.NewReader(in[len(in)/2:])), o)
	if len(again) != len(all) {
		t.Fatalf("%d entries, and then %d", len(all), len(again))
	}
	for i := range all {
		if summary(&all[i]) != summary(&again[i]) {
			t.Fatalf("entry %d differs", i)
		}
	}
}

func asSourceError(err error) *trace.SourceError {
	e, _ := err.(*trace.SourceError)
	return e
}

func checkEntry(t *testing.T, e *trace.Entry, position int64, info *Info) {
	t.Helper()
	if e.Time.IsZero() == info.HasTimes {
		t.Fatal("some entries have times and some have not")
	}
	if e.Messages == nil && e.InputTokens == nil {
		t.Fatal("an entry has no input")
	}
	for _, n := range []*int32{e.InputTokens, e.OutputTokens, e.Cached, e.Reasoning, e.Images, e.MaxTokens, e.Turn} {
		if n != nil && *n < 0 {
			t.Fatal("a count is negative")
		}
	}
	for _, d := range []*time.Duration{e.TTFT, e.E2E} {
		if d != nil && *d < 0 {
			t.Fatal("a duration is negative")
		}
	}
	for _, p := range e.Parents {
		if p < 0 || p >= position {
			t.Fatalf("entry %d follows entry %d", position, p)
		}
	}
	if e.Status != "" && e.Status != trace.ClosedStatus(e.Status) && e.Status != "other" {
		t.Fatal("a status is of no closed list")
	}
	if info.BlockSize > 0 && e.SourceBlocks != nil && len(e.SourceBlocks) != blocksOf(*e.InputTokens, info.BlockSize) {
		t.Fatal("the blocks do not cover the input")
	}
}

func FuzzMooncake(f *testing.F) {
	f.Add([]byte(fixtures["mooncake"]))
	f.Add([]byte(`{"timestamp":"MARK","input_length":"MARK","output_length":[],"hash_ids":{"MARK":1}}` + "\nMARK\n{\"MARK"))
	f.Add([]byte(oneRow + `{"timestamp": 1.5, "input_length": 1e0, "output_length": 01, "hash_ids": [ 0 ,-1]}` + "\n"))
	f.Add([]byte(`{"timestamp":99999999999999999,"input_length":2147483648,"output_length":1,"hash_ids":[18446744073709551616]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		fuzz(t, in, Options{Format: "mooncake"})
		sameBothWays(t, in)
	})
}

func FuzzJSONL(f *testing.F) {
	f.Add([]byte(`{"a":{"n":5},"t":1700000000,"ids":[1],"ms":2.5,"MARK":"MARK"}` + "\n{\"a\":{\"n\":\"MARK\"}}\n[MARK]"))
	f.Add([]byte(`{"a":{"n":5},"t":1700000000,"ids":[1],"ms":2.5,"MARK":{"d":1}}`))
	f.Add([]byte(`{"a":[{"n":5}],"t":"2026-01-02 03:04:05","ids":"[1,2]","ms":"MARK","a.n":17}`))
	m := Mapping{"input_tokens": {"a.n", "a[0].n"}, "time": {"t"}, "blocks": {"ids"}, "ttft_ms": {"ms"}, "e2e": {"d"}}
	f.Fuzz(func(t *testing.T, in []byte) { fuzz(t, in, Options{Format: "jsonl", Map: m, BlockSize: 16}) })
}

func FuzzCSV(f *testing.F) {
	f.Add([]byte("n,text,t\n5,MARK,0.5\n\"6\",\"MARK\"\"\nMARK\",1\nMARK,MARK,MARK\n7,\"MARK"))
	f.Add([]byte("t,n,text\r\n1700000000,1,\xff\r\n\r\n1700000000123,2,\r\n1,2,3,MARK"))
	m := Mapping{"input_tokens": {"n"}, "time": {"t"}, "messages": {"messages", "text"}, "user": {"text"}}
	f.Fuzz(func(t *testing.T, in []byte) { fuzz(t, in, Options{Format: "csv", Map: m}) })
}

// sglangBegin begins a line of SGLang's text log.
const sglangBegin = "[2026-01-02 03:04:07] Finish: obj=GenerateReqInput("

// formatSeeds are inputs of formats, by their names, that are broken or odd, or have a secret where none is shown.
var formatSeeds = map[string][]string{
	"claude-code": {
		claudeAsks("u1", "", 1) + claudeSays("a1", "u1", 2, "m1", [3]int{1, 2, 3}, 4, claudeTools("Task:t1")) + claudeResult("u2", "a1", 3, "t1", "'toolUseResult':{'agentId':'MARK'}") +
			claudeAsks("b1", "", 2, aside, "'agentId':'MARK'") + claudeSays("b2", "b1", 2.5, "m2", [3]int{1, 2, 3}, 4, "", aside, "'agentId':'MARK'") + claudeSays("a2", "u2", 4, "m3", [3]int{1, 2, 3}, 4, ""),
		claudeSays("a1", "a2", 2, "m1", [3]int{1, 2, 3}, 4, "") + claudeSays("a2", "a1", 2, "MARK", [3]int{1, 2, 3}, 4, "") + `{"uuid":"MARK","timestamp":"MARK"}` + "\nMARK",
		claudeAsks("u1", "u1", 1, aside) + claudeSays("a1", "a1", 2, "m1", [3]int{1, 2, 3}, 4, "", aside),
	},
	"codex": {
		codexMetaLine("1", "MARK", "'forked_from_id':'MARK','source':{'subagent':{}}") + codexTurn("1", "MARK") + codexLine("1", "event_msg", codexAsks) + codexCalls("2", "wait", "MARK") +
			codexResult("3", "MARK") + codexCount("3", [4]int{9, 6, 4, 2}, [4]int{9, 6, 4, 2}) + codexLine("4", "compacted", "'usage':'MARK'") + codexCount("5", [4]int{18, 9, 8, 4}, [4]int{9, 6, 4, 2}),
		codexMetaLine("1,0", "a", "'history_base':{'end_ordinal_exclusive':1}") + codexLine("2,1", "token_usage_record", "'thread_id':'MARK','usage':{'input_tokens':1}") + codexLine("2", "event_msg", "'type':'MARK','started_at':'MARK'") + "MARK",
	},
	"sglang": {
		sglangBegin + `text='MARK', a={'MARK': (1, True)}, b=[1] ... [2]), out={'text': 'MARK', 'meta_info': {'prompt_tokens': 9}}`,
		sglangBegin + "a=((((((, MARK",
		sglangBegin + `), out={'meta_info': {'prompt_tokens': 'MARK', 'e2e_latency': 1e99}}`,
	},
	"langsmith": {
		`{"run_type":"llm","start_time":"MARK","inputs":{"messages":[{"role":"MARK","content":[[{"text":"MARK"}]]}]},"outputs":"MARK"}`,
	},
	"chats": {
		`[["MARK","b"]]`,
		`{"human":"MARK","assistant":"b"}`,
		`{"conversation_id":"MARK","turn":1,"role":"user","content":"a"}`,
		`{"conversations":[[{"messages":[{"role":"user","content":"MARK"}],"prompt_tokens":3}]]}`,
		`{"messages":[{"role":"tool_call","content":"[{\"name\":\"MARK\"}]"}]}`,
	},
	"aider": {
		`{"event":"message_send_starting","properties":{"MARK":1},"user_id":"MARK","time":1767323040}` + "\n" + aiderFormat().Example + "\n" + `{"event":"MARK","time":"MARK"}`,
	},
	"api-log": {
		`{"timestamp":1767323045,` + anthropicAsked + "," + anthropicAnswer + "}",
		`{"timestamp":"2026-01-02",` + responsesAsked + "," + responsesAnswer + "}",
		`{"timestamp":1767323045,"request":{"messages":[{"role":"user","content":"MARK"}]},"response":"data: {\"type\":\"message_start\",\"message\":{\"MARK\":1}}\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":\"MARK\"}}"}`,
		`{"timestamp":1767323045,` + responsesAsked + "," + responsesAnswer + "}\n" + `{"timestamp":1767323046,"request":{"input":"MARK","previous_response_id":"resp_1"},"response":{"id":"MARK","object":"response","output":[],"usage":{"input_tokens":9}}}`,
	},
	"azure-2023": {
		azureHeader + "MARK,MARK,MARK\n\"MARK\n\",1,2\n\"MARK\"x,1,2\n2023-11-16 18:17:03,\xff,2\n\"MARK",
		azureHeader + "2023-11-16 18:17:03.9799600+01:00,1,2\n1700000000,1,2\n",
	},
	"azure-2025": {
		"NumImages,TIMESTAMP,ContextTokens,GeneratedTokens\nMARK,MARK,MARK,MARK\n-1,2024-10-15T12:00:00Z,1,2\n,2024-10-15T12:00:00Z,1,2",
	},
	"azure-apim": {
		`{"tables":[{"columns":[{"name":"CorrelationId"},{"name":"PromptTokens"},{"name":"TimeGenerated"},{"name":"RequestMessages"}],"rows":[["MARK",900,"2026-01-02T03:04:05Z",["MARK"]],["MARK"],"MARK"]},"MARK"]}`,
		"TimeGenerated,CorrelationId,SequenceNumber,PromptTokens,CompletionTokens,RequestMessages\n2026-01-02T03:04:05Z,MARK,0,9,1,MARK\n2026-01-02T03:04:05Z,MARK,MARK,MARK,1,MARK\n",
	},
	"bailian": {
		`{"chat_id":"MARK","parent_chat_id":1.5,"timestamp":1,"input_length":16,"output_length":1,"turn":0,"hash_ids":[1,2,3],"type":"MARK"}` + "\nMARK",
		`{"chat_id":1,"parent_chat_id":1,"timestamp":1,"input_length":17,"output_length":1,"turn":2,"hash_ids":[1],"type":null}`,
	},
	"baseten": {
		`{"timestamp_start_unix_ms":1760000000123,"prompt":"MARK","input_tokens":30,"output_tokens":2,"request_canceled":"MARK","total_hashes":["MARK",1,null],"block_size":16,"provided_session_id":"MARK"}`,
		`{"timestamp_start_unix_ms":1,"input_tokens":30,"output_tokens":2,"total_hashes":[1],"block_size":16,"duration_ttft_ms":1e3}` + "\n" + `{"timestamp_start_unix_ms":2.5,"input_tokens":30,"block_size":-1}`,
	},
	"blis": {
		blisTop + "0,MARK,MARK,MARK,MARK,0,MARK,1024,true,276,40,276,0,0,0,0.5,MARK,0,0,1500,1600,91600,991600,12,MARK,MARK,MARK\n1,c,,,MARK,1,MARK,1024,true,1,1,1,0,0,0,0,,0,9,1000000,1000001,1000002,1000003,1,ok,,",
		"slo_class,arrival_time_us,input_tokens,output_tokens,send_time_us,first_chunk_time_us,last_chunk_time_us,prefix_length,prefix_group\nMARK,1,2,3,9223372036854775807,9223372036854775807,MARK,2147483647,g\n,0,0,0,0,1e18,9223372036854775806,0,g\n",
	},
	"burstgpt": {
		"Log Type,Elapsed time,Session ID,Timestamp,Model,Request tokens,Response tokens\nMARK,MARK,MARK,MARK,MARK,MARK,MARK\nx,1.5,9,5,m,1,0\nx,,,6.5,,1,2",
	},
	"cline": {
		`[{"ts":"MARK","say":"api_req_started","text":"MARK"},{"ts":1,"say":"api_req_started","text":"{\"tokensIn\":1,\"tokensOut\":\"MARK\"}"}]`,
	},
	"dynamo-requests": {
		requestEnd("q0", "a", "", 0, 1000, replayed) + "\n" + toolEnd("a", 1100, 1200) + "\n" + requestEnd("q1", "b", "a", 1300, 1400, replayed) + "\n" + requestEnd("q2", "a", "", 1500, 1600, replayed),
		`{"event":{"schema":"dynamo.request.trace.v1","event_type":"request_end","event_time_unix_ms":"MARK","agent_context":{"session_id":"MARK"},"request":{"request_id":"MARK","input_tokens":5,"request_received_ms":1e300}}}` + "\n{MARK",
	},
	"evalscope": {
		`{"body":{"model":"MARK","messages":[{"role":"user","content":"MARK"}],"tools":[1]},"timestamp":0,"request_id":"MARK"}` + "\n" + `{"body":"{\"prompt\":\"MARK\"}","timestamp":2.25,"completion_tokens":9}`,
		`{"body":"MARK","timestamp":"MARK"}`,
	},
	"gateway-csv": {
		"timestamp,request_json\nMARK,MARK\n2026-01-02 03:04:05,\"{\"\"prompt\"\":\"\"MARK\"\"}\"\n\"MARK",
	},
	"gemini-cli": {
		`{"sessionId":"MARK","projectHash":"MARK","kind":"subagent","startTime":"MARK"}`,
	},
	"langfuse": {
		observation(`,"input":"MARK","model_parameters":{"max_tokens":"MARK"},"MARK":MARK`),
		"type,start_time,usage_details,input\nGENERATION,2026-01-02 03:04:05,\"{\"\"input\"\":5}\",MARK\nGENERATION,MARK,MARK,MARK\n",
		`{"trace":{"sessionId":"MARK"},"observations":[{"id":"MARK","parentObservationId":"MARK","type":"GENERATION","startTime":"2026-01-02","usage":{"input":1}},MARK`,
	},
	"litellm-log": {
		"{\n\"call_type\":\"acompletion\",\"MARK\":MARK}",
		`{"startTime":1767323045.5,"endTime":"MARK","metadata":{"prefix_block_hashes":[1],"prefix_block_size":4},"prompt_tokens":3,"messages":[{"role":"MARK"}],"response":{"choices":[{"message":5}]}}`,
	},
	"litellm-spend": {
		spend(map[string]string{"metadata": `{"prefix_block_hashes":["MARK",1],"prefix_block_size":16}`, "messages": "MARK", "startTime": "MARK", "model": "MARK"}),
		spend(map[string]string{"prompt_tokens": "17", "metadata": `{"prefix_block_hashes":["ff"],"prefix_block_size":16}`}),
	},
	"lmsys": {
		`{"conversation_id":"MARK","model":"MARK","conversation":[{"role":"user","content":"MARK"},{"role":"assistant","content":"MARK"},{"role":"MARK"}]}` + "\n[MARK]",
	},
	"openai-batch": {
		`{"custom_id":"MARK","body":{"MARK":1,"messages":[{"role":"MARK"}]}}` + "\n" + `{"custom_id":"MARK","response":{"status_code":"MARK","body":{"created":"MARK","usage":{"prompt_tokens":"MARK"}}}}` + "\nMARK",
		batchAsk + batchAnswer + batchAnswer,
	},
	"openai-log": {
		`{"messages":[{"role":"MARK","content":"MARK"}],"ts":"MARK"}` + "\n" + `{"prompt":["MARK",1],"MARK":{"MARK":"MARK"}}` + "\n{MARK\n\"MARK",
		`{"prompt":"MARK","usage":{"prompt_tokens":"MARK"},"response":{"choices":[{"message":{"content":[{"text":"MARK"},{"type":"image"}]}}]}}`,
		`{"data":[{"messages":[{"role":"user","content":"MARK"}]},{"MARK":MARK`,
		`{"meta":"MARK","data":[{"prompt":"MARK"}]}` + "\n" + `{"data":[{"prompt":5}],"MARK":1} MARK`,
	},
	"opencode": {
		`{"info":{"id":"MARK","parentID":"MARK"},"messages":[{"info":{"role":"assistant","time":{"created":"MARK","completed":5},"tokens":{}}}]}`,
	},
	"openhands": {
		`{"history":[{"timestamp":"MARK","tool_call_metadata":{"model_response":{"id":"MARK"}}},{"timestamp":"1970-01-01T00:00:01","tool_call_metadata":{"model_response":{"id":"b"}}}],"metrics":{"token_usages":[{"model":"MARK","response_id":"b"},{}],"response_latencies":[{"latency":1e30,"response_id":"b"}]}}`,
	},
	"otel-genai": {
		span(inferenceFlat),
		span(`"llm.input_messages.99999999999.message.role":"MARK","llm.input_messages.1.message.role":"user","llm.input_messages.1.message.contents.MARK.x":"MARK","llm.tools.0.tool.json_schema":"MARK","openinference.span.kind":"MARK"`),
		span(lengths),
		"{\n\"spans\":[" + span(`"MARK":"MARK","gen_ai.usage.input_tokens":"MARK","gen_ai.input.messages":"[MARK"`) + ",MARK]}\n{}",
		`[{"attributes":[{"key":"gen_ai.input.messages","value":{"stringValue":"[{\"role\":\"user\",\"parts\":[5,{\"type\":\"tool_call\"},\"MARK\"]}]"}}],"startTimeUnixNano":"1767323045000000000"}]`,
	},
	"qwen-code": {
		`{"type":"assistant","sessionId":"MARK","timestamp":"MARK","usageMetadata":{"promptTokenCount":"MARK"}}`,
	},
	"rl-rollouts": {
		`{"group":0,"stream":0,"prompt_len":40,"out_lens":[10,5],"obs_lens":[14],"tool_times":[1.5]}` + "\n" + `{"group":0,"stream":1,"prompt_len":40,"out_lens":[3],"obs_lens":[]}`,
	},
	"sagemaker": {
		capture(`{"MARK":"MARK","messages":[{"role":"MARK"}]}`, "=MARK") + "\nMARK",
	},
	"sharegpt": {
		`[{"id":"MARK","conversations":[{"from":"MARK","value":"MARK"}]},{"MARK":MARK},"MARK",[[{}]],{"conversations":["MARK"]}`,
		`[{"conversations":[{"from":"gpt","value":"\"},{MARK"}]} , {"conversation":[{"role":"user","content":"\\"},{"role":"gpt","content":""}]}] MARK`,
	},
	"swe-agent": {
		"{\n\"trajectory\":[{\"execution_time\":\"MARK\",\"messages\":[{\"role\":\"user\",\"content\":\"MARK\"}]}],\n\"history\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"MARK\"}]},{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"function\":{\"name\":\"MARK\"}}]},{\"role\":\"assistant\",\"content\":\"MARK\"}]}\nMARK",
	},
	"tracelab": {
		round("MARK", 0, "user_message@01", "text@02", "MARK@03") + round("MARK", 1, "tool_result@05", "text@06"),
		`{"session_id":"MARK","round_index":"MARK","input_tokens_total":1,"output_tokens":2,"timing_events":["MARK",{"event_type":7,"timestamp":"MARK"}]}` + "\n{MARK",
	},
	"tracelab-sessions": {
		"session_id,arrival_time,round_idx,prefix_len,input_len,output_len,tool_wait_after_ms\nMARK,1.5,0,0,600,3,7\nMARK,1,1,513,600,3,MARK\n\"MARK",
		"id,arrival_time,round_idx,prefix_len,input_len,output_len,tool_wait_after_ms\r\n1,1e300,0,2147483647,0,0,0\r\n",
	},
	"trie": {
		`{"num_turns":1,"input_prompt_length":40,"assistant_response_length":[10],"tool_call_output_length":[14],"tool_call_latency":[1.5],"final_assistant_response_length":7}`,
	},
	"trtllm-trace": {
		trtllmTraceOf("a", trtllmMessage("", 0, 0, "system", `'system_prompt_id':'MARK','tokens':40`), trtllmMessage("", 0, 1, "assistant", `'prompt_tokens':70,'completion_tokens':6`),
			trtllmEventAt("parallel_start", "", ""), trtllmMessage("0", 1, 0, "assistant", `'prompt_tokens':70,'completion_tokens':6,'finish_reason':'MARK','content':'MARK'`), trtllmEventAt("parallel_end", "", "")),
		trtllmTraceOf("MARK", trtllmEventAt("parallel_start", "0,1", `,'children':[{'event_type':'tool_call','duration_ms':1e9}]`), trtllmEventAt("MARK", "-1", "")),
	},
	"weka": {
		"[" + strings.ReplaceAll(strings.TrimSpace(traceFixtures["weka"]), "\n", ",\n") + "]",
		`{"id":"MARK","block_size":4,"requests":[{"t":1,"type":"s","in":5,"out":1,"hash_ids":[]},{"t":2,"type":"subagent","requests":[` +
			`{"t":0.5,"type":"n","model":"MARK","in":400,"out":1,"hash_ids":[1,2]},{"t":3,"type":"subagent","requests":[{"t":0,"type":"s","in":0,"out":0}]}]}]}`,
		`{"id":"a","block_size":1,"requests":[{"t":"MARK","type":"MARK","in":1.5,"hash_ids":["MARK"],"stop":"MARK"}]} MARK`,
	},
	"wildchat": {
		`{"conversation_hash":"MARK","model":"MARK","timestamp":"MARK","conversation":[{"role":"user","content":"MARK","timestamp":"MARK"},{"role":"assistant","content":"MARK","timestamp":1681000000}]}`,
		`{"conversation_hash":"c","timestamp":1681000000.5,"conversation":"[{\"role\":\"user\",\"content\":\"MARK\"},{\"role\":\"gpt\",\"content\":null}]"}` + "\n{MARK",
	},
}

// fuzzedFormats are the formats that can be read from any bytes, and at first the one that the bytes themselves tell.
// Others need a mapping or several files, and have fuzz targets of their own.
func fuzzedFormats() []Format {
	return append([]Format{{}}, slices.DeleteFunc(Formats(), func(f Format) bool {
		return slices.Contains([]string{"servegen", "jsonl", "csv", "parquet", "vllm-log"}, f.Name)
	})...)
}

func FuzzFormats(f *testing.F) {
	for i, of := range fuzzedFormats() {
		seeds := append(formatSeeds[of.Name], of.Example, fixtures[of.Name], logFixtures[of.Name], traceFixtures[of.Name],
			strings.NewReplacer(`"m"`, `"MARK"`, "900", `"MARK"`).Replace(of.Example))
		slices.Sort(seeds)
		for _, in := range slices.Compact(seeds) {
			f.Add([]byte(in), uint8(i))
			f.Add([]byte(in), uint8(0)) // as what its content tells
		}
	}

	f.Fuzz(func(t *testing.T, in []byte, i uint8) {
		formats := fuzzedFormats()
		fuzz(t, in, Options{Format: formats[int(i)%len(formats)].Name})
	})
}
