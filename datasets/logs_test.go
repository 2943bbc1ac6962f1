package datasets

import (
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"reprise/datasets/internal/sniff"
	"reprise/trace"
)

// logFixtures are small inputs of each log format, each with an ordinary record
// in every form that the format has.
var logFixtures = map[string]string{
	"openai-batch": `{"custom_id":"b","response":{"status_code":200,"request_id":"q2","body":{"created":1767323046,"choices":[{"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2}}},"error":null,"id":"batch_req_2"}` + "\n" +
		`{"custom_id":"a","method":"POST","url":"/v1/completions","body":{"model":"m","prompt":"p","max_tokens":5}}` + "\r\n" +
		`{"custom_id":"b","method":"POST","url":"/v1/chat/completions","body":{"model":"m","messages":[{"role":"user","content":"Hello"}]}}` + "\n",
	"otel-genai": `{"resourceSpans":[{"scopeSpans":[{"spans":[` +
		`{"name":"chat","startTimeUnixNano":"1767323045000000001","endTimeUnixNano":"1767323047000000001","attributes":[{"key":"gen_ai.usage.input_tokens","value":{"intValue":"12"}},{"key":"gen_ai.usage.output_tokens","value":{"intValue":3}}]}]}]}]}` + "\n" +
		`{"name":"llm_request","startTimeUnixNano":1767323046000000001,"attributes":{"gen_ai.usage.prompt_tokens":5,"gen_ai.latency.time_to_first_token":0.25}}` + "\n",
	"sagemaker": `{"captureData":{"endpointInput":{"data":"{\"inputs\":\"p\",\"parameters\":{\"max_new_tokens\":5}}","encoding":"JSON"},"endpointOutput":{"data":"W3siZ2VuZXJhdGVkX3RleHQiOiJoaSJ9XQ==","encoding":"BASE64"}},"eventMetadata":{"eventId":"e","inferenceTime":"2026-01-02T03:04:05Z"},"eventVersion":"0"}` + "\n",
	"litellm-log": `{"id":"r1","call_type":"acompletion","startTime":1767323045.5,"endTime":1767323047.5,"completionStartTime":1767323045.75,"prompt_tokens":12,"completion_tokens":3,"model":"m","messages":[{"role":"user","content":"q"}],"response":{"choices":[{"message":{"content":"a"}}]}}` + "\n" +
		`{"id":"r2","call_type":"acompletion","startTime":1767323046.5,"endTime":1767323047.5,"prompt_tokens":12,"completion_tokens":3}` + "\n",
	"litellm-spend": "request_id,call_type,startTime,endTime,completionStartTime,prompt_tokens,completion_tokens,model,messages,response\n" +
		`r1,acompletion,2026-01-02 03:04:05.5,2026-01-02 03:04:07.5,2026-01-02 03:04:05.75,12,3,m,"[{""role"":""user"",""content"":""q""}]",{}` + "\n" +
		`r2,acompletion,2026-01-02 03:04:06,2026-01-02 03:04:07.5,,12,3,m,{},{}` + "\n",
	"langfuse": `[{"id":"o1","trace_id":"t","type":"GENERATION","start_time":"2026-01-02 03:04:05.678901","end_time":"2026-01-02 03:04:06","usage_details":{"input":12,"output":3}},` + "\n" +
		`{"id":"o2","trace_id":"t","type":"SPAN","start_time":"2026-01-02 03:04:05.678901","usage_details":{}},` +
		`{"id":"o3","trace_id":"t","type":"GENERATION","start_time":"2026-01-02 03:04:07","usage_details":{"input":12,"output":3}}]`,
	"gateway-csv": "timestamp,request_json,response_json\n" +
		`2026-01-02T03:04:05Z,"{""prompt"":""p""}","{""usage"":{""prompt_tokens"":4}}"` + "\n",
	"vllm-log": "INFO 08-12 10:11:12 [logger.py:39] Received request chatcmpl-1: prompt: 'He said: \"x\",\\n é', params: SamplingParams(n=1, temperature=0.5, stop=['a, b'], max_tokens=100), prompt_token_ids: [1, 2, 3], prompt_embeds shape: None, lora_request: None.\n" +
		"INFO 08-12 10:11:13 [async_llm.py:1] Finished request chatcmpl-1.\n",
}

// logWant is what the fixtures hold.
var logWant = map[string][]string{
	"openai-batch": {`model=m user:"p" max=5 completion`, `model=m user:"Hello" reply="Hi" in=9 out=2 chat ok stop`},
	"otel-genai":   {"490923h4m5.000000001s in=12 out=3 e2e=2s", "490923h4m6.000000001s in=5 ttft=250ms"},
	"sagemaker":    {`490923h4m5s user:"p" reply="hi" max=5 completion`},
	"litellm-log": {`490923h4m5.5s model=m user:"q" reply="a" in=12 out=3 chat ttft=250ms e2e=2s`,
		`490923h4m6.5s in=12 out=3 chat e2e=1s`},
	"litellm-spend": {`490923h4m5.5s model=m user:"q" in=12 out=3 chat ttft=250ms e2e=2s`, `490923h4m6s model=m in=12 out=3 chat e2e=1.5s`},
	"langfuse":      {"490923h4m5.678901s session=t in=12 out=3 e2e=321.099ms", "490923h4m7s session=t in=12 out=3"},
	"gateway-csv":   {`490923h4m5s user:"p" in=4 completion`},
	"vllm-log":      {`14122h11m12s user:"He said: \"x\",\n é" in=3 max=100 temperature=0.5 chat`},
}

// wantEntries reads in, which has no bad record, and compares summaries.
func wantEntries(t *testing.T, in string, o Options, want ...string) Info {
	t.Helper()
	all, info := mustRead(t, in, o)
	compare(t, all, want)
	return info
}

func compare(t *testing.T, all []trace.Entry, want []string) {
	t.Helper()
	for i := range max(len(all), len(want)) {
		got, expected := "(none)", "(none)"
		if i < len(all) {
			got = summary(&all[i])
		}
		if i < len(want) {
			expected = want[i]
		}
		if !sameWords(got, expected) {
			t.Errorf("entry %d\n  %s\n  want %s", i, got, expected)
		}
	}
}

// wantBad reads one record at fault and returns its place and reason.
func wantBad(t *testing.T, in string, o Options, want string) {
	t.Helper()
	o.MaxBad = 1
	all, info, err := read(strings.NewReader(in), o)
	got := ""
	switch {
	case err != nil:
		got = err.Error()
	case len(info.FirstBad) > 0:
		got = info.FirstBad[0].Error()
	}
	if !strings.HasPrefix(got, want) || want == "" {
		t.Errorf("%.80q\n  %d entries, %s\n  want %s", in, len(all), got, want)
	}
}

func wantNote(t *testing.T, info Info, want string) {
	t.Helper()
	for _, n := range info.Notes {
		if strings.HasPrefix(n, want) {
			return
		}
	}
	t.Errorf("notes %q, want %q", info.Notes, want)
}

// Every fixture is recognised by its content among all formats, and read whole.
func TestLogFixtures(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(logFixtures)) {
		t.Run(name, func(t *testing.T) {
			f, err := detectFormat([]byte(logFixtures[name]))
			if err != nil || f.Name != name {
				t.Errorf("recognised as %q, %v", f.Name, err)
			}
			wantEntries(t, logFixtures[name], Options{}, logWant[name]...)
			// Where the decoders meet the end of a buffer changes nothing.
			all, _, err := read(iotest.OneByteReader(strings.NewReader(logFixtures[name])), Options{})
			if err != nil {
				t.Fatal(err)
			}
			compare(t, all, logWant[name])
		})
	}
}

// No fixture of a log is taken for another format's by its detector.
func TestLogDetectorsAreDisjoint(t *testing.T) {
	logFormats := slices.DeleteFunc(Formats(), func(f Format) bool { return logFixtures[f.Name] == "" })
	if len(logFormats) != len(logFixtures) {
		t.Fatalf("%d of %d fixtures are of no format", len(logFixtures)-len(logFormats), len(logFixtures))
	}
	for name, in := range logFixtures {
		for _, f := range logFormats {
			if f.Name != name && f.detect(sniff.New([]byte(in))) {
				t.Errorf("%s is taken for %s", name, f.Name)
			}
		}
		for other, in := range fixtures {
			for _, f := range logFormats {
				if f.detect(sniff.New([]byte(in))) {
					t.Errorf("%s is taken for %s", other, f.Name)
				}
			}
		}
	}
}

// A log that is cut anywhere gives the records before the cut, unchanged, and an
// error with its place when the cut goes through a record.
func TestLogsCutAnywhere(t *testing.T) {
	for name, whole := range logFixtures {
		want, _ := mustRead(t, whole, Options{Format: name})
		for k := range len(whole) {
			got, _, err := read(strings.NewReader(whole[:k]), Options{Format: name})
			var at *trace.SourceError
			if err != nil && !errors.As(err, &at) {
				t.Fatalf("%s cut at %d: %v", name, k, err)
			}
			within := k > 0 && whole[k-1] != '\n' && whole[k] != '\n' && whole[k] != '\r'
			header := strings.HasSuffix(name, "csv") || name == "litellm-spend"
			// A row of CSV that ends before its last field looks like one without it.
			if within && whole[k-1] == ',' && err == nil {
				continue
			}
			if within && err == nil && name != "vllm-log" && !(header && strings.Count(whole[:k], "\n") == 0) {
				t.Errorf("%s cut at %d: no error", name, k)
			}
			for i := range got {
				if name != "openai-batch" && name != "vllm-log" && summary(&got[i]) != summary(&want[i]) {
					t.Fatalf("%s cut at %d: entry %d is %s", name, k, i, summary(&got[i]))
				}
			}
		}
	}
}

// Dates without a zone are in the zone that is told, else UTC.
func TestLogsWithoutZone(t *testing.T) {
	zone := time.FixedZone("", 3600)
	for name, shifted := range map[string]bool{"litellm-spend": true, "langfuse": true, "vllm-log": true, "sagemaker": false, "otel-genai": false} {
		utc, _ := mustRead(t, logFixtures[name], Options{})
		told, _ := mustRead(t, logFixtures[name], Options{TZ: zone})
		if got := utc[0].Time.Sub(told[0].Time) == time.Hour; got != shifted {
			t.Errorf("%s: %v and %v", name, utc[0].Time, told[0].Time)
		}
	}
}

// textFiles are files of a source in memory.
func textFiles(contents ...string) []File {
	var files []File
	for i, c := range contents {
		files = append(files, File{Name: "file" + string(rune('1'+i)), Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(c)), nil }})
	}
	return files
}
