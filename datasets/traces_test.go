package datasets

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"

	"reprise/trace"
)

// traceFixtures are small inputs of the formats of published traces, whole and
// without a fault.
var traceFixtures = map[string]string{
	"dynamo": `{"session_id":"a","request_id":"r1","timestamp":0.0,"input_length":513,"output_length":5,"hash_ids":[0,1],"priority":2}` + "\n" +
		`{"session_id":"a","delay":1500.25,"input_length":1030,"output_length":6,"hash_ids":[0,2,3],"output_token_ids":[7]}` + "\r\n" +
		`{"timestamp":9,"input_tokens":3,"output_tokens":1,"hash_ids":[4]}` + "\n",
	"aiperf": `{"session_id":"a","timestamp":0,"text_input":"Hello","output_length":4}` + "\n" +
		`{"session_id":"b","timestamp":5.5,"messages":[{"role":"user","content":"q"}],"output_length":2,"tools":[{}]}` + "\n" +
		`{"payload":{"prompt":"p","max_tokens":50,"model":"m","stream":true},"timestamp":1000}` + "\n",
	"bailian": `{"chat_id":1,"parent_chat_id":-1,"timestamp":0,"input_length":17,"output_length":3,"type":"text","turn":1,"hash_ids":[0,1]}` + "\n" +
		`{"chat_id":2,"parent_chat_id":1,"timestamp":61.114,"input_length":33,"output_length":3,"type":"search","turn":2,"hash_ids":[0,2,3]}` + "\n",
	"burstgpt":   "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\r\n5,ChatGPT,472,18,490,Conversation log\r\n45,GPT-4,12,0,12,API log\r\n",
	"azure-2024": azureHeader + "2024-05-10 00:00:00.009930+00:00,2162,5\n2024-05-10 00:00:01+00:00,2399,6\n",
	"azure-2025": "TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\n2024-10-15T12:00:00.269Z,0,1180,42\n2024-10-15T12:00:01Z,3,2399,6\n",
	"weka": `{"id":"a","block_size":4,"requests":[{"t":0.0,"type":"s","model":"m","in":9,"out":2,"hash_ids":[1,2],"api_time":1.5,"ttft":0.5},` +
		`{"t":4,"type":"n","model":"m","in":12,"out":2,"hash_ids":[1,2,3],"think_time":2.5}]}` + "\n" +
		`{"id":"b","block_size":4,"requests":[{"t":0,"type":"n","model":"m","in":4,"out":1,"hash_ids":[1]}]}` + "\n",
}

// fixtures are small inputs of each format.
var fixtures = map[string]string{
	"mooncake": oneRow + `{"timestamp": 3000, "input_length": 513, "output_length": 12, "hash_ids": [0, 1]}` + "\r\n" +
		`{"output_length":12,"timestamp":3001,"input_length":0,"hash_ids":[],"é":"\u00e9"}` + "\n",
	"azure-2023": azureHeader + "2023-11-16 18:17:03.9799600,4808,10\r\n2023-11-16 18:17:04.0319600,3180,8",
	"sharegpt": "[{\"id\":\"x_0\",\n\"conversations\":[{\"from\":\"human\",\"value\":\"a \\\"b\\\"\"},{\"from\":\"gpt\",\"value\":\"é\"}]},\n" +
		`{"id":"x_1","conversations":["{\"from\":\"gpt\",\"value\":\"c\"}",{"from":"human","value":"d"},{"from":"gpt","value":"e"}]}]` + "\n",
	"openai-log": `{"timestamp":"2026-01-02T03:04:05.678Z","messages":[{"role":"user","content":[{"type":"text","text":"q"}]}],"usage":{"prompt_tokens":8}}` + "\n" +
		`{"timestamp":"2026-01-02T03:04:06Z","prompt":"p","choices":[{"text":"a"}],"user":"u","session":5}`,
}

// spell is summary with the times before a request.
func spell(e *trace.Entry) string {
	s := summary(e)
	if e.Turn == nil && e.Parents != nil {
		s += fmt.Sprintf(" after=%v", e.Parents)
	}
	if e.Think != nil {
		s += fmt.Sprintf(" think=%v", *e.Think)
	}
	if e.Tool != nil {
		s += fmt.Sprintf(" tool=%v", *e.Tool)
	}
	return s
}

// reads holds that an input is read as the entries that lines spell.
func reads(t *testing.T, in string, o Options, want ...string) Info {
	t.Helper()
	all, info := mustRead(t, in, o)
	if len(all) != len(want) {
		t.Fatalf("%d entries, want %d", len(all), len(want))
	}
	for i := range all {
		if got := spell(&all[i]); got != want[i] {
			t.Errorf("entry %d:\n  %s\n  want %s", i, got, want[i])
		}
		checkEntry(t, &all[i], int64(i), &info)
	}
	return info
}

func notesAre(t *testing.T, info Info, want ...string) {
	t.Helper()
	if got := strings.Join(info.Notes, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("notes:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
	}
}

// An input that is cut anywhere gives an error that names the place, or, cut
// between records, the records so far. A cut inside the last number of a CSV
// file cannot be told.
func TestCutAnywhere(t *testing.T) {
	all := maps.Clone(fixtures)
	maps.Copy(all, traceFixtures)
	for format, whole := range all {
		want, _ := mustRead(t, whole, Options{Format: format})
		isCSV := strings.HasPrefix(whole, "T")
		cuts, body := 0, strings.IndexByte(whole, '\n')
		for k := range len(whole) {
			got, _, err := read(strings.NewReader(whole[:k]), Options{Format: format})
			var at *trace.SourceError
			switch {
			case errors.As(err, &at):
				if at.Line < 1 || at.Column < 1 || isCSV && k > body && !errors.Is(err, io.ErrUnexpectedEOF) || !isCSV && !errors.Is(err, io.ErrUnexpectedEOF) && k > 0 {
					t.Fatalf("%s cut at %d: %v", format, k, err)
				}
				cuts++
			case err != nil && k > 0:
				t.Fatalf("%s cut at %d: %v", format, k, err)
			case format == "sharegpt" && k > 0 && strings.TrimSpace(whole[k:]) != "":
				t.Fatalf("%s cut at %d: no error", format, k)
			}
			if len(got) > len(want) {
				t.Fatalf("%s cut at %d: %d entries of %d", format, k, len(got), len(want))
			}
			for i := range got {
				last := isCSV && i == len(got)-1 // may be cut inside its last field, which cannot be told
				if spell(&got[i]) != spell(&want[i]) && !last {
					t.Fatalf("%s cut at %d: entry %d is %s, want %s", format, k, i, spell(&got[i]), spell(&want[i]))
				}
			}
		}
		least := 0.75
		if fixtures[format] != "" {
			least = 0.9
		}
		if float64(cuts) < least*float64(len(whole)) {
			t.Errorf("%s: only %d of %d cuts were seen", format, cuts, len(whole))
		}
	}
}

func FuzzDynamo(f *testing.F) {
	f.Add([]byte(traceFixtures["dynamo"]), "")
	f.Add([]byte(traceFixtures["dynamo"]), rowsDelta)
	f.Add([]byte(`{"session_id":"MARK","request_id":"MARK","timestamp":1,"input_length":1,"output_length":900,"hash_ids":[1],"MARK":1}`+"\n"+
		`{"session_id":"MARK","wait_for":["MARK","r2"],"delay_ms":5,"tool_wait_ms":7,"input_length":600,"output_length":9,"hash_ids":[2,3],"prefix_reset":false}`), rowsFull)
	f.Add([]byte(`{"session_id":1,"input_length":1,"output_length":1,"delay":"MARK","hash_ids":[9223372036854775808],"prefix_reset":true}`+"\n{MARK"), rowsDelta)
	f.Fuzz(func(t *testing.T, in []byte, rows string) {
		if rows != rowsFull && rows != rowsDelta {
			rows = ""
		}
		fuzz(t, in, Options{Format: "dynamo", Rows: rows})
	})
}

func FuzzAIPerf(f *testing.F) {
	f.Add([]byte(traceFixtures["aiperf"]), false)
	f.Add([]byte(`{"session_id":"s","text_input":"MARK","timestamp":0}`+"\n"+`{"session_id":"s","text_input":"MARK","delay":1}`+"\n"+`{"payload":{"messages":[{"role":"user","content":"MARK"}]},"delay":"MARK"}`), true)
	f.Fuzz(func(t *testing.T, in []byte, delta bool) {
		o := Options{Format: "aiperf"}
		if delta {
			o.Rows = rowsDelta
		}
		fuzz(t, in, o)
	})
}
