package datasets

import (
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/datasets/internal/record"
	"reprise/datasets/internal/row"
	"reprise/datasets/internal/stamp"
	"reprise/datasets/internal/talk"
	"reprise/trace"
)

// Every declared format is told from all others by one record, and read.
// What is said of records that are left out, or stop the reading.
const (
	noteNoModelCalls = "records that are no calls of a model were left out"
	noteCacheAnswers = "calls that the gateway answered from its own cache were left out, since no engine saw them"
	noteDailySums    = "it is a sum of a day (OpenRouter's /api/v1/activity), and single requests are not in it: export the activity page as CSV, or collect /api/v1/generation of each request"
)

func TestDeclaredExamples(t *testing.T) {
	const at = "490923h4m5"
	want := map[string]string{
		"api-log":           at + `s model=m in=120 out=5 cached=100 max=100 e2e=1.9s user:"Hello" reply="Hi" chat stop`,
		"agent-otel":        at + ".1s session=s model=claude-m in=900 out=40 cached=640 e2e=1.9s",
		"cline-cli":         "490923h4m7s session=s1 model=m in=900 out=40 cached=640",
		"opencode-messages": at + ".1s session=ses_1 model=m in=900 out=40 cached=640 reasoning=12 e2e=1.9s stop",
		"aibrix":            `21ms session=s1 in=909 out=22 user:"Hello" completion`,
		"sglang":            at + `.1s in=900 out=40 cached=640 e2e=1.9s user:"Hello" reply="Hi" max=100 completion stop`,
		"langsmith":         at + ".1s session=t1 in=900 out=40 ttft=500ms e2e=1.9s",
		"har":               at + `.1s model=m in=8 out=2 e2e=900.5ms user:"Hello" reply="Hi" chat ok stop`,
		"braintrust":        at + ".1s session=s0 model=m in=900 out=40 cached=640 ttft=400ms e2e=1.9s",
		"mlflow":            at + "s model=m in=900 out=40 e2e=2s",
		"openrouter-api": at + ".1s model=openai/m replica=OpenAI in=900 out=40 cached=640 reasoning=12 " +
			"stream=true stop ttft=400ms e2e=1.9s",
		"lmcache": at + `.1s session=0 user:"Hello" reply="Hi" completion`,
		"openrouter": at + ".1s user=u model=openai/m in=900 out=40 cached=640 reasoning=12 stream=true " +
			"stop ttft=400ms e2e=1.9s",
		"helicone":         at + ".1s user=u session=s1 model=m in=900 out=40 cached=640 ok ttft=400ms e2e=1.9s",
		"portkey":          at + ".1s user=u session=t1 model=m in=900 out=40 ok e2e=1.9s",
		"cloudflare":       at + ".1s model=m in=900 out=40 ok e2e=1.9s",
		"kong":             at + ".1s user=u model=m in=900 out=40 cached=640 ok ttft=400ms e2e=1.9s",
		"envoy-ai-gateway": at + ".1s session=s1 model=m in=900 out=40 ok e2e=1.9s",
		"azure-apim":       at + ".1s model=m in=900 out=40 stream=true",
		"bedrock":          at + "s user=a model=m in=900 out=40 cached=640",
		"azure-2023":       "472266h17m3.97996s in=4808 out=10",
		"azure-2024":       "476472h0m0.00993s in=2162 out=5",
		"azure-2025":       "480276h0m0.269s in=1180 out=42 images=1",
		"evalscope":        `0s model=m user:"Hello" out=9 max=16 chat`,
		"gateway-csv":      "490923h4m5s user:\"Hello\" in=8 out=2 chat",
		"sagemaker":        "490923h4m5s user:\"Hello\" in=8 out=2 chat",
		"burstgpt":         "5s model=ChatGPT class=Conversation log in=472 out=18",
		"vertex":           "490923h4m7s model=m in=900 out=40 cached=640 reasoning=12",
	}
	var formats []Format
	for _, d := range declaredFormats() {
		formats = append(formats, d.format())
	}
	if len(formats) != len(want) {
		t.Errorf("%d formats, %d of them tested", len(formats), len(want))
	}
	for _, f := range formats {
		info := wantEntries(t, f.Example, Options{}, want[f.Name])
		if info.Format != f.Name {
			t.Errorf("%s is read as %s", f.Name, info.Format)
		}
		if f.Tried == fromDocumentation {
			wantNote(t, info, "the reader of this format is "+fromDocumentation)
		}
		if !record.LooksLikeJSON([]byte(f.Example)) {
			continue
		}
		// In an envelope, and when the record goes on after what is looked at.
		calls := 2
		if slices.Contains([]string{"langsmith", "braintrust", "mlflow"}, f.Name) {
			calls = 1 // a span that is exported twice is one call
		}
		if info, _ := mustRead(t, `{"data":[`+f.Example+`,`+f.Example+`],"next":null}`, Options{}); len(info) != calls {
			t.Errorf("%s: %d entries of an envelope", f.Name, len(info))
		}
		if f.Name == "lmcache" {
			continue // it is told by having no other keys
		}
		cut := f.Example[:len(f.Example)-1] + `,"zzz":"` + strings.Repeat("x", record.HeadBytes)
		if d, err := detectKeyed([]byte(cut[:record.HeadBytes])); err != nil || d.Name != f.Name {
			t.Errorf("%s, cut: %q, %v", f.Name, d.Name, err)
		}
	}
}

// What is left out, and what the counts hold.
func TestDeclaredRules(t *testing.T) {
	example := func(name string, changes ...string) string {
		for _, f := range declaredFormats() {
			if f.name == name {
				in := strings.NewReplacer(changes...).Replace(f.example)
				if in == f.example && len(changes) > 0 {
					t.Fatalf("%s: nothing changes", name)
				}
				return in
			}
		}
		return ""
	}
	for _, c := range []struct{ in, want string }{
		{example("langsmith", `"llm"`, `"chain"`), noteNoModelCalls + ": 1"},
		{example("braintrust", `"llm"`, `"tool"`), noteNoModelCalls + ": 1"},
		{example("mlflow", "CHAT_MODEL", "AGENT"), noteNoModelCalls + ": 1"},
		{example("helicone", `"delay_ms"`, `"cache_reference_id":"5f0c","delay_ms"`), noteCacheAnswers + ": 1"},
		{example("cloudflare", `"cached":false`, `"cached":true`), noteCacheAnswers + ": 1"},
		{example("kong", `"meta":`, `"cache":{"cache_status":"Hit"},"meta":`), noteCacheAnswers + ": 1"},
		{example("azure-apim", ",0,", ",1,"), noteApimLost + ": 1"},
		{example("cloudflare", `"tokens_in":900`, `"tokens_in":null`, "200", "500"), ""},
		{example("envoy-ai-gateway", `"900"`, `"-"`, `"200"`, `"503"`), noteFailedSpans + ": 1"},
		{example("envoy-ai-gateway", `"900"`, `"-"`), noteEmptyCalls + ": 1"},
	} {
		all, info, err := read(strings.NewReader(c.in), Options{})
		if c.want == "" { // not even told
			if err == nil {
				t.Errorf("%s is read", c.in)
			}
			continue
		}
		if err != nil || len(all) != 0 {
			t.Errorf("%s: %d entries, %v", c.in, len(all), err)
		}
		wantNote(t, info, c.want)
	}
	for _, day := range []string{`{"data":[{"date":"2026-01-02","model":"openai/m","model_permaslug":"openai/m","endpoint_id":"e","usage":0.1,"requests":5,"prompt_tokens":900,"completion_tokens":40}]}`,
		`{"date":"2026-01-02","model_permaslug":"openai/m","usage":0.1,"requests":5,"prompt_tokens":900,"completion_tokens":40}`} {
		if _, _, err := read(strings.NewReader(day), Options{}); err == nil || !strings.HasSuffix(err.Error(), ": "+noteDailySums) {
			t.Error(err)
		}
	}
	if _, _, err := read(strings.NewReader(example("lmcache", "1767323045100", "1500")), Options{}); err == nil ||
		!strings.HasSuffix(err.Error(), stamp.SayUnit) {
		t.Error(err)
	}
	const at = "490923h4m5.1s "
	wantEntries(t, example("openrouter-api", `"latency":400`, `"latency":1950`, `"cancelled":false`, `"cancelled":true`), Options{}, at+"model=openai/m replica=OpenAI in=900 out=40 cached=640 reasoning=12 stream=true cancelled stop e2e=1.9s")
	// Anthropic's counts, passed on by a gateway.
	wantEntries(t, example("helicone", `"prompt_tokens":900`, `"prompt_tokens":20`), Options{}, at+"user=u session=s1 model=m in=660 out=40 cached=640 ok ttft=400ms e2e=1.9s")
	wantEntries(t, example("helicone", `"delay_ms"`, `"cache_reference_id":"00000000-0000-0000-0000-000000000000","delay_ms"`), Options{}, at+"user=u session=s1 model=m in=900 out=40 cached=640 ok ttft=400ms e2e=1.9s")
	wantEntries(t, example("openrouter", ",false,", ",true,"), Options{}, at+"user=u model=openai/m in=900 out=40 cached=640 reasoning=12 stream=true cancelled stop ttft=400ms e2e=1.9s")
	// Kong's plugins by their names, with counts in the singular, and the request beside them.
	for _, plugin := range []string{"ai-proxy", "ai-proxy-advanced"} {
		in := example("kong", `"proxy"`, `"`+plugin+`"`, `"prompt_tokens"`, `"prompt_token"`, `"completion_tokens"`, `"completion_token"`,
			`"ai":{`, `"ai":{"payload":{"request":"{\"messages\":[{\"role\":\"user\",\"content\":\"q\"}]}"},`)
		wantEntries(t, in, Options{}, at+`user=u model=m in=900 out=40 cached=640 ok e2e=1.9s user:"q" chat`)
		wantNote(t, func() Info {
			_, info := mustRead(t, strings.Replace(in, `"meta":`, `"cache":{"cache_status":"Hit"},"meta":`, 1)+"\n"+in, Options{})
			return info
		}(), noteCacheAnswers+": 1")
	}
	// An empty name, and a dash, are none where another field has one.
	wantEntries(t, example("kong", `"request_model"`, `"response_model":"","request_model"`, `"username":"u"`, `"username":"-","id":"v"`), Options{}, at+"user=v model=m in=900 out=40 cached=640 ok ttft=400ms e2e=1.9s")
	// The last chunk of a stream has the latencies.
	wantEntries(t, example("bedrock", `"output":{`, `"output":{"outputBodyJson":[{"type":"message_start"},{"amazon-bedrock-invocationMetrics":{"inputTokenCount":20,"outputTokenCount":40,"invocationLatency":1900,"firstByteLatency":400}}],`), Options{},
		"490923h4m5s user=a model=m in=900 out=40 cached=640 ttft=400ms e2e=1.9s")
	// A trace of MLflow tells the session of all its spans, and a stream its chunks.
	wantEntries(t, example("mlflow", `"trace_id":"t"`, `"trace_id":"t","trace_metadata":{"mlflow.trace.session":"s1","mlflow.trace.user":"u"}`, `"span_id":"a"`,
		`"span_id":"a","events":[{"name":"zebra","time_unix_nano":1767323045100000000},{"name":"mlflow.chunk.item.0","time_unix_nano":1767323045400000000,"attributes":{}},{"name":"mlflow.chunk.item.1","time_unix_nano":1767323045500000000}]`,
		`"mlflow.llm.model":"m"`, `"mlflow.llm.model":"\"m\"","mlflow.spanInputs":"{\"max_tokens\":99,\"temperature\":0.2}","mlflow.spanOutputs":"{\"usage\":{\"completion_tokens_details\":{\"reasoning_tokens\":7}}}"`), Options{},
		"490923h4m5s user=u session=s1 model=m in=900 out=40 reasoning=7 max=99 temperature=0.2 ttft=400ms e2e=2s")
	// Text.
	wantEntries(t, example("langsmith", `"run_type"`, `"inputs":{"messages":[[{"lc":1,"type":"constructor","id":["langchain","schema","messages","HumanMessage"],"kwargs":{"content":"q","type":"human"}}]]},"outputs":{"generations":[[{"text":"a","message":{"kwargs":{"content":"a","type":"ai"},"id":["AIMessage"]}}]]},"run_type"`), Options{},
		`490923h4m5.1s session=t1 in=900 out=40 ttft=500ms e2e=1.9s user:"q" reply="a" chat`)
	wantEntries(t, example("vertex", `{\"contents\":[]}`, `{\"contents\":[{\"role\":\"user\",\"par","ts\":[{\"text\":\"q\"}]}],\"systemInstruction\":{\"parts\":[{\"text\":\"s\"}]}}`), Options{},
		`490923h4m7s model=m in=900 out=40 cached=640 reasoning=12 system:"s" user:"q" chat`)
}

// A Parquet file of LangSmith's bulk export.
func TestDeclaredParquet(t *testing.T) {
	type run struct {
		ID      string    `parquet:"id"`
		TraceID string    `parquet:"trace_id"`
		Kind    string    `parquet:"run_type"`
		Start   time.Time `parquet:"start_time,timestamp(microsecond)"`
		End     time.Time `parquet:"end_time,timestamp(microsecond)"`
		Inputs  string    `parquet:"inputs"`
		Prompt  int64     `parquet:"prompt_tokens"`
		Answer  int64     `parquet:"completion_tokens"`
		Team    string    `parquet:"team"`
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	in := toParquet(t, run{"r", "t", "llm", at, at.Add(time.Second), `{"messages":[{"role":"user","content":"q"}]}`, 900, 40, "blue"}, run{Kind: "chain", Start: at, End: at})
	info := wantEntries(t, in, Options{}, `490923h4m5s session=t user:"q" in=900 out=40 e2e=1s chat`)
	if info.Format != "langsmith" {
		t.Errorf("read as %s", info.Format)
	}
	wantNote(t, info, noteNoModelCalls+": 1")
	info = wantEntries(t, in, Options{Map: Mapping{"user": {"team"}}}, `490923h4m5s user=blue session=t user:"q" in=900 out=40 e2e=1s chat`)
	if info.Format != "langsmith" {
		t.Errorf("with a field more read as %s", info.Format)
	}
}

// Conversations in the forms of other APIs and frameworks than OpenAI's.
func TestChatOf(t *testing.T) {
	for in, want := range map[string]string{
		`"text"`: `"text"`, `"[{\"role\":\"user\",\"content\":\"q\"}]"`: `user "q"`, `"{\"a\":1}"`: `"{\"a\":1}"`,
		`{"messages":[{"role":"user","content":"q"}],"system":[{"type":"text","text":"s"}]}`: `system [{"text":"s","type":"text"}] user "q"`,
		`{"contents":"q"}`: `user "q"`,
		`{"contents":[{"role":"model","parts":[{"text":"a"},{"functionCall":{"name":"f","args":{}}}]}]}`: `assistant [{"text":"a"},{"id":null,"input":{},"name":"f","type":"tool_use"}]`,
		`[{"type":"human","content":"q"},{"type":"ai","content":"a"}]`:                                   `user "q" assistant "a"`,
		`{"choices":[{"index":0,"message":{"role":"assistant","content":"a"}}]}`:                         `assistant "a"`,
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"a"}]}}]}`:                           `assistant [{"text":"a"}]`,
		`{"output":{"message":{"role":"assistant","content":[{"text":"a"}]}}}`:                           `assistant [{"text":"a"}]`,
		`{"instructions":"s","input":"q"}`:                                                               `system "s" user "q"`,
		`{"a":1}`:                                                                                        ``, `5`: ``, `[{"role":"alien","content":"x"}]`: ``, `[5]`: ``, `null`: ``,
	} {
		v, _, _ := row.DecodeJSON([]byte(in))
		messages, prompt := talk.ChatOf(v)
		var got []string
		for _, m := range messages {
			fields := m.(map[string]any)
			content, _ := talk.Compact(fields["content"])
			role, _ := trace.RoleOf(fields["role"].(string))
			got = append(got, []string{"system", "user", "assistant", "tool"}[role], content)
		}
		if messages == nil && prompt != "" {
			text, _ := talk.Compact(prompt)
			got = append(got, text)
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%s\n  %s\n  want %s", in, s, want)
		}
	}
}

// The text log of SGLang has each call on the line of its end; text that it cuts is left out.
func TestSGLangLog(t *testing.T) {
	line := func(at, text, params, out string) string {
		return "[" + at + " TP0] Finish: obj=GenerateReqInput(text=" + text + ", input_ids=None, sampling_params=" + params + ", rid='zebra', stream=True, lora=<zebra at 0x7f>, modalities=[]), out=" + out + "\n"
	}
	const params = `{'temperature': 0.1, 'max_new_tokens': 100, 'stop': None, 'n': 1, 'skip': True, 'odd': zebra(1, 'a'), 'pair': ('a', 1)}`
	meta := func(text string) string {
		return `{'text': ` + text + `, 'output_ids': [1, 2] ... [3, 4], 'meta_info': {'id': 'zebra', 'finish_reason': {'type': 'length', 'length': 100}, 'prompt_tokens': 900, 'completion_tokens': 40, 'cached_tokens': 640, 'e2e_latency': 1.9}}`
	}
	in := "[2026-01-02 03:04:04] server_args=ServerArgs(model_path='zebra')\n" +
		"[2026-01-02 03:04:05] Receive: obj=GenerateReqInput(text='Hello', rid='zebra')\n" +
		line("2026-01-02 03:04:07", `"it's), out={"`, params, meta(`'Hi\n\'you\''`)) +
		line("2026-01-02 03:04:08", `'its begin' ... 'its end'`, "{}", meta(`'Hi' ... 'end'`))
	info := wantEntries(t, in, Options{},
		`490923h4m5.1s in=900 out=40 cached=640 e2e=1.9s user:"it's), out={" reply="Hi\n'you'" max=100 temperature=0.1 completion length`,
		"490923h4m6.1s in=900 out=40 cached=640 e2e=1.9s length")
	wantNote(t, info, noteSGLangSeconds)
	wantNote(t, info, "lines that tell of no end of a request were passed over: 2")
	whole := line("2026-01-02 03:04:07", "None", params, meta("None"))
	for _, broken := range []string{whole[:len(whole)-4] + "\n" + whole, strings.Replace(whole, "), out=", "", 1) + whole} {
		_, _, err := read(strings.NewReader(broken), Options{})
		if err == nil || !strings.Contains(err.Error(), "\n  log:1:1: it is not a whole line of SGLang's log\n") {
			t.Error(err)
		}
	}
	_, _, err := read(strings.NewReader(whole+whole[:len(whole)-4]), Options{})
	if err == nil || err.Error() != "log:2:1: unexpected end of file: the last line is not whole" {
		t.Error(err)
	}
}

// The rows of one call are joined, in the order of their numbers and not of the file; an
// answer of Log Analytics has tables.
func TestAPIMJoins(t *testing.T) {
	const columns = "TimeGenerated,CorrelationId,SequenceNumber,ModelName,PromptTokens,CompletionTokens,RequestMessages,ResponseMessages\n"
	log := columns + `2026-01-02T03:04:05.1Z,x1,2,,,,"lo""}]",` + "\n" +
		`2026-01-02T03:04:05.1Z,x1,0,m,2,1,,` + "\n" +
		`2026-01-02T03:04:06.1Z,x2,0,m,900,40,,` + "\n" +
		`2026-01-02T03:04:05.1Z,x1,1,,,,"[{""role"":""user"",""content"":""Hel",` + "\n" +
		`2026-01-02T03:04:05.1Z,x1,3,,,,,"[{""role"":""assistant"",""content"":""Hi""}]"` + "\n" +
		`2026-01-02T03:04:07.1Z,x3,1,,,,"[]",` + "\n"
	want := []string{`490923h4m5.1s model=m in=2 out=1 user:"Hello" reply="Hi" chat`, "490923h4m6.1s model=m in=900 out=40"}
	wantNote(t, wantEntries(t, log, Options{}, want...), noteApimLost+": 1")
	const tables = `{"tables":[{"name":"PrimaryResult","columns":[{"name":"TimeGenerated","type":"datetime"},{"name":"CorrelationId","type":"string"},{"name":"SequenceNumber","type":"int"},{"name":"ModelName","type":"string"},{"name":"PromptTokens","type":"int"},{"name":"CompletionTokens","type":"int"},{"name":"RequestMessages","type":"dynamic"},{"name":"ResponseMessages","type":"dynamic"}],"rows":[` +
		`["2026-01-02T03:04:05.1Z","x1",0,"m",2,1,null,null],["2026-01-02T03:04:06.1Z","x2",0,"m",900,40,null,null],` +
		`["2026-01-02T03:04:05.1Z","x1",1,"",null,null,[{"role":"user","content":"Hello"}],null],["2026-01-02T03:04:05.1Z","x1",2,"",null,null,null,"[{\"role\":\"assistant\",\"content\":\"Hi\"}]"]]}]}`
	info := wantEntries(t, tables, Options{}, want...)
	if info.Format != "azure-apim" {
		t.Errorf("%+v", info)
	}
	// A row at fault is left out, and the calls around it are not.
	if all, info, err := read(strings.NewReader(log+"a,b\n"+log[len(columns)-1:]), Options{MaxBad: 1}); err != nil || len(all) != 4 || info.Bad != 1 {
		t.Errorf("%d calls, %v, %+v", len(all), err, info)
	}
	// Calls beyond the window are handed out, and one that is told twice is two.
	var long strings.Builder
	long.WriteString(columns)
	for range maxApimCalls + 10 {
		long.WriteString("2026-01-02T03:04:05.1Z,x1,0,m,9,1,,\n")
	}
	if all, _ := mustRead(t, long.String(), Options{}); len(all) != maxApimCalls+10 {
		t.Errorf("%d calls", len(all))
	}
}
