package datasets

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/row"
)

// inspected spells what is found in a text: the fields, and the flags to import it.
func inspected(t *testing.T, in string) (string, *Inspection) {
	t.Helper()
	found, err := Inspect(textFiles(in), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range found.Fields {
		fmt.Fprintf(&b, "%s: %s (%s) %d\n", f.Path, f.Type, f.Values, f.Present)
	}
	fmt.Fprintf(&b, "%s\n%s", strings.Join(found.Flags, " "), found.Missing)
	return b.String(), found
}

// The fields of each container, and what is proposed for them.
func TestInspect(t *testing.T) {
	for in, want := range map[string]string{
		`{"at":1767323045.5,"meta":{"uid":"x","team":null},"usage":{"prompt_tokens":120,"completion_tokens":40},"took_ms":12.5,"tags":["a","b"]}` + "\n" +
			`{"at":1767323046,"meta":{"team":"b"},"usage":{"prompt_tokens":7,"completion_tokens":3},"cached":true}`: `at: number (1767323045.5 to 1767323046) 2
meta.team: text (1 character) 1
meta.uid: text (1 character) 1
usage.completion_tokens: whole number (3 to 40) 2
usage.prompt_tokens: whole number (7 to 120) 2
took_ms: number (12.5) 1
tags: list (2 members) 1
cached: true or false () 1
--map time=at --map input_tokens=usage.prompt_tokens --map output_tokens=usage.completion_tokens --map e2e_ms=took_ms
`,
		// What is in a list is no field but the answer's.
		`[{"created":"2026-01-02T03:04:05Z","conv":[{"role":"user","content":"zqx"}],"n_prompt_tokens":5,"choices":[{"text":"zqx zqx"}]}]`: `created: date (2026-01-02 03:04) 1
conv: messages () 1
n_prompt_tokens: whole number (5) 1
choices[].text: text (7 characters) 1
--map time=created --map messages=conv --map input_tokens=n_prompt_tokens --map output=choices[0].text
`,
		// A German spreadsheet.
		"Datum;Benutzer;Eingabe Tokens;Ausgabe Tokens;Dauer (s)\n02.01.2026 15:04;ann;1200;40;1,5\n03.01.2026 15:05;bob;7;3;\n": `Datum: date (2026-01-02 15:04 to 2026-01-03 15:05) 2
Benutzer: text (3 characters) 2
Eingabe Tokens: whole number (7 to 1200) 2
Ausgabe Tokens: whole number (3 to 40) 2
Dauer (s): number (1.5) 1
--map time=Datum --map input_tokens=Eingabe Tokens --map output_tokens=Ausgabe Tokens --map user=Benutzer --map e2e_s=Dauer (s)
`,
		// Of several types, of which a number may be a text.
		`{"a":"x","b":"x"}` + "\n" + `{"a":5,"b":[1]}`: `a: text () 2
b: mixed () 2

no field looks like a prompt or its number of tokens`,
		// Messages in a string, and no time.
		`id,chat_id,payload` + "\n" + `1,c,"[{""role"":""user"",""content"":""zqx""}]"` + "\n": `id: whole number (1) 1
chat_id: text (1 character) 1
payload: messages () 1
--map messages=payload --map session=chat_id --arrivals poisson:2
`,
		// Nothing of use.
		"a,b\n1,2\n": "a: whole number (1) 1\nb: whole number (2) 1\n\nno field looks like a prompt or its number of tokens",
		`{"page":1,"answers":[{"n":1},{"n":2}]}`: `page: whole number (1) 1
answers[].n: whole number (1 to 2) 1

its records are in the list answers`,
		`{"page":1,"answers":[` + strings.Repeat(`{"n":1},`, 10_000): "\nits records are in the list answers",
		// In a list that is read without a word.
		`{"page":1,"data":[{"n":1},{"n":2}]}`: "n: whole number (1 to 2) 2\n\nno field looks like a prompt or its number of tokens",
		// Without a header: by position.
		"2026-01-02T03:04:05Z,zqx,5\n": `1: date (2026-01-02 03:04) 1
2: text (3 characters) 1
3: whole number (5) 1
--map time=1
its first row is no header, so its columns are named by their position, and which is the prompt or its number of tokens is not known`,
		"zqx or not?\nzqx\n": "\nthe first row does not look like names of " +
			"columns: write a header above it",
		"zqx and no more\nzqx\n": "\nthe first row does not look like names of " +
			"columns: write a header above it",
		"zqx is what the first line says and more,b\nx,5\n": "\nthe first row does not look like names of columns: write a header above it",
		"t,zqx \"x\" tokens\n1,2\n":                         "\nit is neither JSON nor Parquet, and as CSV it has a fault at line 1, column 7: a quote is out of place",
		// JSON in a column, one level down.
		"time,usage,a.b\nJan  2 15:04:05,\"{\"\"prompt_tokens\"\":5,\"\"details\"\":{\"\"cached_tokens\"\":3}}\",zqx\n": `time: date (without a year) 1
usage.details.cached_tokens: whole number (3) 1
usage.prompt_tokens: whole number (5) 1
a.b: text (3 characters) 1
--map time=time --map input_tokens=usage.prompt_tokens --map cached_tokens=usage.details.cached_tokens
`,
		// A count has thousands, and no decimals.
		"t;input tokens\n2026-01-02 03:04:05;1.200\n": `t: date (2026-01-02 03:04) 1
input tokens: number (its mark is of decimals or of thousands) 1
--map time=t --decimal comma --map input_tokens=input tokens
`,
		"at,prompt_tokens\n":              "\nit has no records",
		`{"at":5,"prompt_tokens"` + "\n":  "\nnone of its records is whole JSON",
		"\x7fELF\x00\x01\n\xff\xfe\x00\n": "\nit is neither JSON nor CSV nor Parquet",
		`{"latency":5,"response_time":7,"end":"2026-01-02T03:04:05Z","input_tokens":1,"cached_input_tokens":1,"max_tokens":5}`: `latency: whole number (5) 1
response_time: whole number (7) 1
end: date (2026-01-02 03:04) 1
input_tokens: whole number (1) 1
cached_input_tokens: whole number (1) 1
max_tokens: whole number (5) 1
--map input_tokens=input_tokens --map cached_tokens=cached_input_tokens --map max_tokens=max_tokens
its only time, end, is when a request ended: --inspect -o mine.yaml writes a format file that says so, for --format mine.yaml`,
		// The whole prompt is the body in which a system prompt, instructions or tools stand beside it.
		`{"id":"1","params":{"system":"zqx","messages":[{"role":"user","content":"zqx"}],"max_tokens":5}}`: `id: whole number (1) 1
params.max_tokens: whole number (5) 1
params.messages: messages () 1
params.system: text (3 characters) 1
--map messages=params --map max_tokens=params.max_tokens --arrivals poisson:2
`,
		`{"at":"2026-01-02T03:04:05Z","instructions":"zqx","input":"zqx"}`: `at: date (2026-01-02 03:04) 1
instructions: text (3 characters) 1
input: text (3 characters) 1
--map time=at --map messages=.
`,
		`{"at":"2026-01-02T03:04:05Z","call":{"input":[{"role":"user","content":"zqx"}],"tools":[{"name":"zqx"}]}}`: `at: date (2026-01-02 03:04) 1
call.input: messages () 1
call.tools[].name: text (3 characters) 1
--map time=at --map messages=call
`,
		`{"arrival_s":0.5,"prompt_token_ids":[5,6,7],"completion_tokens":20}`: `arrival_s: number (0.5) 1
prompt_token_ids: list (3 members) 1
completion_tokens: whole number (20) 1
--map time=arrival_s --map prompt=prompt_token_ids --map output_tokens=completion_tokens
`,
	} {
		got, found := inspected(t, in)
		if got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
		if strings.Contains(fmt.Sprintf("%+v", found), "zqx") {
			t.Errorf("%s: the inspection holds text", in)
		}
	}
}

// What is proposed gives the lengths, the times and the ends that the records have; what cannot be had is said.
func TestInspectProposes(t *testing.T) {
	const sums, days = ": import a log of the single requests", "its only date, date, is a day without a time, as in " +
		"reports of sums by day: import a log of the single requests"
	const periods = ", is the begin of a day or of a longer period, as in reports of sums" + sums
	for in, want := range map[string]string{
		// Failures, of which each log has a field of its own.
		"at,prompt_tokens,error\n2026-01-02 03:04:05,5,\n2026-01-02 03:04:06,5,Timeout\n": "time=at " +
			"input_tokens=prompt_tokens error=error",
		"at,prompt_tokens,error\n2026-01-02 03:04:05,5,None\n2026-01-02 03:04:06,5,Timeout\n": "time=at " +
			"input_tokens=prompt_tokens error=error",
		"at,prompt_tokens,error\n2026-01-02 03:04:05,5,E1\n2026-01-02 03:04:06,5,Timeout\n": "time=at " +
			"input_tokens=prompt_tokens",
		"at,prompt_tokens,error\n2026-01-02 03:04:05,5,no error\n2026-01-02 03:04:06,5,Timeout\n": "time=at " +
			"input_tokens=prompt_tokens error=error",
		"at,prompt_tokens,error\n2026-01-02 03:04:05,5,OK\n2026-01-02 03:04:06,5,Timeout\n": "time=at " +
			"input_tokens=prompt_tokens error=error",
		"at,prompt_tokens,error_code\n2026-01-02 03:04:05,5,0\n2026-01-02 03:04:06,5,7\n": "time=at " +
			"input_tokens=prompt_tokens error=error_code",
		// A length is in characters where the text beside it has as many.
		"at,prompt,prompt_length,output_length\n1767323045,ab c,4,7\n1767323046,äb,2,9\n":                                                "time=at prompt=prompt output_tokens=output_length",
		"at,prompt,prompt_length,output_length\n1767323045,ab c,4,7\n1767323046,äb,1,9\n":                                                "time=at prompt=prompt input_tokens=prompt_length output_tokens=output_length",
		"at,prompt_tokens,success\n2026-01-02 03:04:05,5,True\n2026-01-02 03:04:06,5,False\n":                                            "time=at input_tokens=prompt_tokens status=success",
		`{"at":1767323045,"promptTokens":"5","hasError":false,"streamed":true,"requestedModel":"m"}`:                                     "time=at input_tokens=promptTokens model=requestedModel stream=streamed error=hasError",
		`{"at":1767323045,"input_token":"-","response_code":"429"}` + "\n" + `{"at":1767323045,"input_token":"5","response_code":"200"}`: "time=at input_tokens=input_token status=response_code",
		// Reasoning beside the output, by the total or by the name; within it; and counts under the names of providers.
		"at,Input Tokens,Output Tokens,Reasoning Tokens,Total Tokens\n2026-01-02 03:04:05,9,5,3,17\n":             "time=at input_tokens=Input Tokens output_tokens=Output Tokens+Reasoning Tokens reasoning_tokens=Reasoning Tokens",
		"at,Input Tokens,Output Tokens,Reasoning Tokens,Total Tokens\n2026-01-02 03:04:05,9,5,3,14\n":             "time=at input_tokens=Input Tokens output_tokens=Output Tokens reasoning_tokens=Reasoning Tokens",
		"at,input_tokens,output_tokens,reasoning_tokens\n2026-01-02 03:04:05,9,5,3\n":                             "time=at input_tokens=input_tokens output_tokens=output_tokens reasoning_tokens=reasoning_tokens",
		`{"at":1767323045,"u":{"promptTokenCount":9,"candidatesTokenCount":5,"thoughtsTokenCount":3}}`:            "time=at input_tokens=u.promptTokenCount output_tokens=u.candidatesTokenCount+u.thoughtsTokenCount reasoning_tokens=u.thoughtsTokenCount",
		`{"at":1767323045,"u":{"billed_units":{"input_tokens":2},"tokens":{"input_tokens":9,"output_tokens":5}}}`: "time=at input_tokens=u.tokens.input_tokens output_tokens=u.tokens.output_tokens",
		`{"created_at":"2026-01-02T03:04:05Z","prompt_eval_count":9,"eval_count":5,"done_reason":"stop"}`:         "time=created_at input_tokens=prompt_eval_count output_tokens=eval_count finish_reason=done_reason",
		`{"at":1767323045,"usage":{"prompt_tokens":9,"prompt_tokens_details":{"cached_tokens":4}}}`:               "time=at input_tokens=usage.prompt_tokens cached_tokens=usage.prompt_tokens_details.cached_tokens",
		// The day and the time of day in two columns; a day alone beside a time.
		"date,time,tokens_in\n2026-01-02,03:04:05,5\n":          "time=date+time input_tokens=tokens_in",
		"Date,Time,tokens_in\n02/01/2026,03:04:05 PM,5\n":       "time=Date+Time input_tokens=tokens_in",
		"date,at,tokens_in\n2026-01-02,2026-01-02 03:04:05,5\n": "time=at input_tokens=tokens_in",
		// A row of totals at the end, and counts that a database or Python lacks.
		"at,input_tokens,output_tokens\n2026-01-02 03:04:05,5,NULL\n2026-01-02 03:04:06,6,None\n2026-01-02 " +
			"03:04:07,6,3\nTotal,11,3\n": "time=at input_tokens=input_tokens output_tokens=output_tokens",
		// Sums of several requests.
		"start_time,num_model_requests,input_tokens\n1767323045,12,90000\n": "time=start_time " +
			"input_tokens=input_tokens: its rows are sums of several requests, which num_model_requests counts" + sums,
		"date,input_tokens\n2026-01-02,90000\n": "input_tokens=input_tokens: " + days,
		"month,input_tokens\n2026-01-01T00:00:00Z,90000\n": "time=month " +
			"input_tokens=input_tokens: its only time, month" + periods,
		"at,input_tokens\n2026-01-01T00:00:00Z,9\n2026-01-02 00:00:00Z,9\n": "time=at input_tokens=input_tokens: " +
			"its only time, at" + periods,
		"at,input_tokens\n2026-01-01T00:00:00Z,9\n2026-01-02 00:00:01Z,9\n":                                                                                 "time=at input_tokens=input_tokens",
		`{"completed":10,"total_input_tokens":90000,"mean_ttft_ms":5.5}`:                                                                                    "input_tokens=total_input_tokens ttft_ms=mean_ttft_ms: its rows are sums of several requests, which completed counts" + sums,
		`{"role":"user","text":"a","created_date":"2026-01-02T03:04:05Z"}` + "\n" + `{"role":"assistant","text":"b","created_date":"2026-01-02T03:04:06Z"}`: "time=created_date prompt=text: its rows are messages and no requests: put the messages of a conversation into one list",
		`{"at":1767323045,"n_prompt_tokens":5,"answer":{"role":"assistant","choices":[{"role":"assistant"}]}}`:                                              "time=at input_tokens=n_prompt_tokens",
		`{"role":"admin","input_text":"a"}`:     "prompt=input_text --arrivals poisson:2",
		`{"model":"m","mean_input_tokens":550}`: "model=model: no field looks like a prompt or its number of tokens",
	} {
		_, found := inspected(t, in)
		got := strings.ReplaceAll(strings.Join(found.Flags, " "), "--map ", "")
		if found.Missing != "" {
			got += ": " + found.Missing
		}
		if got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
}

// A format file that is written of a log says which time it has, and adds up what is split.
func TestInspectedFormatFile(t *testing.T) {
	for in, want := range map[string]string{
		"completed_at,latency_ms,input_tokens,output_tokens\n2026-01-02 03:04:09,4200,100,20\n": "time: \"completed_at\"|time_is: end",
		"at,input_tokens,cache_read_input_tokens,output_tokens\n2026-01-02 03:04:09,5,100,20\n": "input_tokens: " +
			"\"input_tokens+cache_read_input_tokens\"|counts: inclusive",
		"date,input_tokens\n2026-01-02,90000\n": "",
	} {
		_, found := inspected(t, in)
		text := string(found.FormatFile())
		for part := range strings.SplitSeq(want, "|") {
			if !strings.Contains(text, part) || want == "" && text != "" {
				t.Errorf("%s: %s lacks %s", in, text, part)
			}
		}
	}
}

// Lists of structs and JSON in strings are found in Parquet.
func TestInspectParquet(t *testing.T) {
	type message struct {
		Role    string `parquet:"role"`
		Content string `parquet:"content"`
	}
	type log struct {
		Start    int64     `parquet:"start,timestamp(millisecond)"`
		Messages []message `parquet:"turns,list"`
		JSON     string    `parquet:"also"`
	}
	path := filepath.Join(t.TempDir(), "log.parquet")
	if err := parquet.WriteFile(path, []log{{1767323045000, []message{{"user", "zqx"}}, `[{"role":"user","content":"zqx"}]`}}); err != nil {
		t.Fatal(err)
	}
	files, err := Expand(path)
	if err != nil {
		t.Fatal(err)
	}
	found, err := Inspect(files, Options{})
	if err != nil || fmt.Sprint(found.Flags) != "[--map time=start --map messages=turns]" {
		t.Errorf("%+v, %v", found, err)
	}
	_, err = OpenFiles(files, Options{})
	var fields *FieldsError
	if !errors.As(err, &fields) || err.Error() != path+":1:1: unrecognised format" || fmt.Sprint(fields.Inspection.Flags) != "[--map time=start --map messages=turns]" {
		t.Error(err)
	}
	_, err = OpenFiles(files, Options{Map: Mapping{"messages": {"turn"}}})
	if !errors.As(err, &fields) || err.Error() != path+`:1:1: there is no column "turn" (--map messages=turn)` || fields.Nearest() != "turns" {
		t.Error(err)
	}
}

// A mapped field that no record has is named, with the one that it may stand for.
func TestAbsentFields(t *testing.T) {
	in := `{"when":5.5,"n":{"prompt":7}}` + "\n" + `{"when":6.5,"n":{"prompt":8}}` + "\n"
	for _, c := range []struct {
		in         string
		m          Mapping
		want, near string
	}{
		{in, Mapping{"time": {"wen"}, "input_tokens": {"n.prompt"}}, `log:1:1: no record has the field "wen" (--map time=wen)`, "when"},
		{in, Mapping{"time": {"when"}, "input_tokens": {"n.promt"}}, `log:1:1: no record has the field "n.promt" (--map input_tokens=n.promt)`, "n.prompt"},
		{in, Mapping{"time": {"when"}, "input_tokens": {"prompt"}}, `log:1:1: no record has the field "prompt" (--map input_tokens=prompt)`, "n.prompt"},
		{in, Mapping{"time": {"xyzxyz|x"}, "input_tokens": {"n.prompt"}}, `log:1:1: no record has the field "xyzxyz|x" (--map time=xyzxyz|x)`, ""},
		{"when,n\n5.5,7\n", Mapping{"time": {"wen"}, "input_tokens": {"n"}}, `log:1:1: there is no column "wen" (--map time=wen)`, "when"},
	} {
		_, _, err := read(strings.NewReader(c.in), Options{Map: c.m})
		var fields *FieldsError
		if err == nil || err.Error() != c.want || !errors.As(err, &fields) || fields.Nearest() != c.near {
			t.Errorf("%v: %v", c.m, err)
		}
	}
	// A field that only some records may have is a note, unless a later one has it.
	all, info := mustRead(t, in, Options{Map: Mapping{"time": {"when"}, "input_tokens": {"n.prompt"}, "user": {"wehn"}, "model": {"m"}}})
	notes := strings.Join(info.Notes, "\n")
	if len(all) != 2 || !strings.Contains(notes, `no record has the field "wehn" (--map user=wehn); did you mean "when"?`) ||
		!strings.Contains(notes, `no record has the field "m" (--map model=m)`) {
		t.Error(notes)
	}
	late := strings.Repeat(in, 2000) + `{"when":7.5,"m":"x","n":{"prompt":8}}` + "\n"
	if _, info := mustRead(t, late, Options{Map: Mapping{"time": {"when"}, "input_tokens": {"n.prompt"}, "model": {"m"}}}); strings.Contains(strings.Join(info.Notes, "\n"), "no record has") {
		t.Error(info.Notes)
	}
}

// An unreadable file is an error and not an inspection.
func TestInspectErrors(t *testing.T) {
	if _, err := Inspect(textFiles("", ""), Options{}); err == nil || !strings.HasSuffix(err.Error(), ": the input is empty") {
		t.Error(err)
	}
	if _, err := Inspect(nil, Options{}); !errors.Is(err, fault.ErrUsage) {
		t.Error(err)
	}
	cut := filepath.Join(t.TempDir(), "cut.parquet")
	if err := os.WriteFile(cut, []byte("PAR1 and no more"), 0o600); err != nil {
		t.Fatal(err)
	}
	files, _ := Expand(cut)
	if _, err := Inspect(files, Options{}); err == nil || !strings.HasPrefix(err.Error(), cut+":1:1: ") {
		t.Error(err)
	}
}

// Whatever the input is, no text gets into an inspection but the names of fields, and
// what it proposes is a mapping.
func FuzzInspect(f *testing.F) {
	for _, in := range fixtures {
		f.Add([]byte(in))
	}
	f.Add([]byte(`[{"a":[{"b":["x"]}],"t":"2026-01-02 03:04:05"},5,{"a":{"b":{"c":{"d":{"e":{"f":{"g":1}}}}}}}]`))
	f.Add([]byte("prompt;input tokens|x;Zeit\n'a;b';5;1,5\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		if row.IsParquet(in) {
			return // FuzzParquet has these
		}
		found, err := Inspect(textFiles(string(in)), Options{})
		if err != nil {
			return
		}
		if len(found.Fields) > inspectedFields {
			t.Fatalf("%d fields", len(found.Fields))
		}
		for i, flag := range found.Flags {
			if flag != "--map" {
				continue
			}
			if _, err := ParseMapping([]string{found.Flags[i+1]}); err != nil {
				t.Fatal(err)
			}
		}
	})
}
