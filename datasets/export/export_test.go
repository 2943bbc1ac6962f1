package export

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/datasets"
	"reprise/trace"
)

// stub is a Prompter whose prompts need every kind of escape.
type stub string

func (s stub) Prompt(_ *trace.Request, buf []byte) ([]byte, error) {
	if s == "" {
		return buf, errors.New("nothing to say")
	}
	return append(buf, s...), nil
}

// write writes rows and returns the file, its header and what was lost.
func write(t testing.TB, name string, o Options, rows []trace.Request) (file, header string, loss []string) {
	t.Helper()
	var out, head bytes.Buffer
	o.Header = &head
	if o.Prompter == nil {
		o.Prompter = stub("some words")
	}
	w, err := NewWriter(name, &out, o)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := w.Write(rows); n != len(rows) || err != nil {
		t.Fatal(n, err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String(), head.String(), w.Loss()
}

// Three rows of two turns and a stranger, with times that no format rounds
// alike.
func sampleRows() []trace.Request {
	return []trace.Request{
		{ArrivalNS: 0, InputTokens: 700, OutputTokens: trace.Ptr[int32](21), Blocks: []uint64{0, 1}, Session: trace.Ptr[int64](0), Turn: trace.Ptr[int32](0),
			Model: "m,1", Stream: trace.Ptr(true), User: trace.Ptr[int64](4), Status: trace.StatusOK, TTFTNS: trace.Ptr[int64](250_000_000), E2ENS: trace.Ptr[int64](1_000_000_000)},
		{ArrivalNS: 1_234_567_890, InputTokens: 512, OutputTokens: new(int32), Blocks: []uint64{0}, Images: trace.Ptr[int32](1), ImageTokens: trace.Ptr[int32](100),
			Model: "m,1", Kind: "completion", Temperature: trace.Ptr[float32](0.7), MaxTokens: trace.Ptr[int32](8), Class: trace.Ptr("batch"), Status: trace.StatusCancelled},
		{ArrivalNS: 3_000_000_000, InputTokens: 1024, OutputTokens: trace.Ptr[int32](100), Blocks: []uint64{0, 2}, Session: trace.Ptr[int64](0), Turn: trace.Ptr[int32](1), Parents: []int64{0},
			ThinkNS: trace.Ptr[int64](1_500_000_000), ToolNS: trace.Ptr[int64](400_000), ReasoningTokens: trace.Ptr[int32](25), Model: "m,1", FinishReason: "stop", Status: trace.StatusFailed},
	}
}

func ids(from, to int, comma string) string {
	var s []string
	for i := from; i < to; i++ {
		s = append(s, fmt.Sprint(i))
	}
	return strings.Join(s, comma)
}

// The bytes of a small trace in every format.
func TestWritersGolden(t *testing.T) {
	const mooncake = `{"timestamp": 0, "input_length": 700, "output_length": 21, "hash_ids": [0, 1]}
{"timestamp": 1235, "input_length": 512, "output_length": 0, "hash_ids": [0]}
{"timestamp": 3000, "input_length": 1024, "output_length": 100, "hash_ids": [0, 2]}
`
	for name, want := range map[string]string{
		"mooncake": mooncake,
		"sglang":   mooncake,
		"bailian": `{"chat_id":0,"parent_chat_id":-1,"timestamp":0.0,"input_length":700,"output_length":21,"type":"text","turn":1,"hash_ids":[` + ids(0, 44, ",") + `]}
{"chat_id":1,"parent_chat_id":-1,"timestamp":1.23456789,"input_length":512,"output_length":0,"type":"image","turn":1,"hash_ids":[` + ids(0, 32, ",") + `]}
{"chat_id":2,"parent_chat_id":0,"timestamp":3.0,"input_length":1024,"output_length":100,"type":"text","turn":2,"hash_ids":[` + ids(0, 32, ",") + "," + ids(64, 96, ",") + `]}
`,
		"aiperf": `{"session_id": "0", "context_mode": "message_array_with_responses", "timestamp": 0, "input_length": 700, "output_length": 21, "hash_ids": [0, 1]}
{"timestamp": 1235, "input_length": 512, "output_length": 0, "hash_ids": [0]}
{"session_id": "0", "context_mode": "message_array_with_responses", "delay": 1500, "input_length": 1024, "output_length": 100, "hash_ids": [0, 2]}
`,
		"vllm-custom": `{"prompt": "a\"\\\n\u0001é<", "output_tokens": 21}
{"prompt": "a\"\\\n\u0001é<", "output_tokens": 1}
{"prompt": "a\"\\\n\u0001é<", "output_tokens": 100}
`,
		"vllm-timed-trace": `{"timestamp": 0.0, "input_length": 700, "output_length": 21, "hash_ids": [` + ids(0, 44, ", ") + `]}
{"timestamp": 1.23456789, "input_length": 512, "output_length": 0, "hash_ids": [` + ids(0, 32, ", ") + `]}
{"timestamp": 3.0, "input_length": 1024, "output_length": 100, "hash_ids": [` + ids(0, 32, ", ") + ", " + ids(64, 96, ", ") + `]}
`,
		"guidellm": `{"timestamp": 0.0, "input_length": 700, "output_length": 21, "hash_ids": [0, 1]}
{"timestamp": 1.23456789, "input_length": 512, "output_length": 0, "hash_ids": [0]}
{"timestamp": 3.0, "input_length": 1024, "output_length": 100, "hash_ids": [0, 2]}
`,
		"inference-perf": `TIMESTAMP,ContextTokens,GeneratedTokens
1970-01-01 00:00:00.0000000,700,21
1970-01-01 00:00:01.2345679,512,0
1970-01-01 00:00:03.0000000,1024,100
`,
		"openai-batch": `{"custom_id": "request-0", "method": "POST", "url": "/v1/chat/completions", "body": {"model": "m,1", "messages": [{"role": "user", "content": "a\"\\\n\u0001é<"}], "max_tokens": 21}}
{"custom_id": "request-1", "method": "POST", "url": "/v1/completions", "body": {"model": "m,1", "prompt": "a\"\\\n\u0001é<", "max_tokens": 1, "temperature": 0.7}}
{"custom_id": "request-2", "method": "POST", "url": "/v1/chat/completions", "body": {"model": "m,1", "messages": [{"role": "user", "content": "a\"\\\n\u0001é<"}], "max_tokens": 100}}
`,
		"blis": `request_id,client_id,tenant_id,slo_class,session_id,round_index,prefix_group,prefix_length,streaming,input_tokens,output_tokens,text_tokens,image_tokens,audio_tokens,video_tokens,reason_ratio,model,deadline_us,server_input_tokens,arrival_time_us,send_time_us,first_chunk_time_us,last_chunk_time_us,num_chunks,status,error_message,finish_reason
0,4,,,0,0,,0,true,700,21,700,0,0,0,0,"m,1",0,0,0,0,250000,1000000,0,ok,,
1,,,batch,,0,,0,false,512,0,412,100,0,0,0,"m,1",0,0,1234568,1234568,0,0,0,incomplete,,
2,,,,0,1,,0,false,1024,100,1024,0,0,0,0.25,"m,1",0,0,3000000,3000000,0,0,0,error,,stop
`,
	} {
		got, header, _ := write(t, name, Options{BlockSize: 512, Prompter: stub("a\"\\\n\x01é<")}, sampleRows())
		if got != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
		if want := map[string]string{"blis": "trace_version: 2\ntime_unit: microseconds\nmode: generated\nwarm_up_requests: 0\n"}[name]; header != want {
			t.Errorf("%s: header %q", name, header)
		}
	}
}

// Turns that are not the rule: a think time without the turn before, a turn of
// which neither is known, agents that join, a session that begins again.
func TestTurns(t *testing.T) {
	row := func(session int64, turn int32, parents ...int64) trace.Request {
		return trace.Request{ArrivalNS: 2_000_000_049, Session: &session, Turn: &turn, Parents: parents}
	}
	rows := []trace.Request{row(0, 3), row(0, 4), row(1, 0), row(1, 1, 1, 2, 0), row(0, 0), {ArrivalNS: 2_000_000_050, Parents: []int64{1}}}
	rows[0].ThinkNS, rows[3].ToolNS = trace.Ptr[int64](7_000_000), trace.Ptr[int64](8_000_000)
	for name, want := range map[string][]string{
		"bailian": {`0,"parent_chat_id":-1,*,"turn":4,`, `1,"parent_chat_id":0,*,"turn":5,`, `2,"parent_chat_id":-1,*,"turn":1,`,
			`3,"parent_chat_id":2,*,"turn":2,`, `4,"parent_chat_id":-1,*,"turn":1,`, `5,"parent_chat_id":1,*,"turn":1,`},
		"aiperf":         {`"0",*"timestamp": 2000,`, `"0",*"timestamp": 2000,`, `"1",*"timestamp": 2000,`, `"1",*"delay": 8,`, `"0",*"timestamp": 2000,`, `{"timestamp": 2000,`},
		"blis":           {`0,,,,0,0,*`, `1,,,,0,1,*`, `2,,,,1,0,*`, `3,,,,1,1,*`, `4,,,,0,2,*`, `5,,,,,0,*`},
		"inference-perf": {`00:00:02.0000000,`, `00:00:02.0000000,`, `00:00:02.0000000,`, `00:00:02.0000000,`, `00:00:02.0000000,`, `00:00:02.0000001,`},
	} {
		file, _, _ := write(t, name, Options{BlockSize: 16}, rows)
		lines := strings.Split(file, "\n")
		if name == "blis" || name == "inference-perf" {
			lines = lines[1:]
		}
		for i, w := range want {
			before, after, _ := strings.Cut(w, "*")
			if _, rest, ok := strings.Cut(lines[i], before); !ok || !strings.Contains(rest, after) {
				t.Errorf("%s, row %d: %s", name, i, lines[i])
			}
		}
	}
}

// Every format is described, and its example is what its writer writes.
func TestOutputs(t *testing.T) {
	seen := map[string]bool{}
	for _, out := range Formats() {
		t.Run(out.Name, func(t *testing.T) {
			if seen[out.Name] || out.About == "" || len(out.Loses) == 0 || (out.Use == "") != (out.Name == "mooncake") {
				t.Errorf("%+v", out)
			}
			seen[out.Name] = true
			row := trace.Request{ArrivalNS: 1_500_200_000, InputTokens: 700, OutputTokens: trace.Ptr[int32](21), Blocks: []uint64{0, 1},
				Session: trace.Ptr[int64](0), Model: "model-0", Stream: trace.Ptr(true)}
			o := Options{BlockSize: 512}
			if out.Name == "bailian" || out.Name == "vllm-timed-trace" {
				row.InputTokens, row.Blocks, o.BlockSize = 40, []uint64{0, 1, 2}, 16
			}
			got, header, _ := write(t, out.Name, o, []trace.Request{row})
			if got != out.top+out.Example+"\n" {
				t.Errorf("it writes\n%s", got)
			}
			if (header != "") != (out.HeaderExt != "") {
				t.Errorf("header %q", header)
			}
			for _, column := range out.says {
				if !slices.ContainsFunc(lossyColumns, func(c struct {
					name string
					set  func(*trace.Request) bool
				}) bool {
					return c.name == column
				}) {
					t.Errorf("there is no column %s", column)
				}
			}
		})
	}
}

// The form of a line in each format: keys in order, integers and floats as the
// readers want them.
var lineForms = func() map[string]*regexp.Regexp {
	const lengths, spaced = `, "input_length": \d+, "output_length": \d+`, `, "hash_ids": \[(\d+(, \d+)*)?\]`
	forms := map[string]string{
		"mooncake": `\{"timestamp": \d+` + lengths + spaced + `\}`,
		"sglang":   `\{"timestamp": \d+` + lengths + spaced + `\}`,
		"bailian": `\{"chat_id":\d+,"parent_chat_id":(-1|\d+),"timestamp":\d+\.\d{1,9},"input_length":\d+,"output_length":\d+,` +
			`"type":"(text|image)","turn":[1-9]\d*,"hash_ids":\[(\d+(,\d+)*)?\]\}`,
		"aiperf":           `\{("session_id": "\d+", "context_mode": "message_array_with_responses", )?"(timestamp|delay)": \d+` + lengths + `(` + spaced + `)?\}`,
		"vllm-custom":      `\{"prompt": "[^"]+", "output_tokens": [1-9]\d*\}`,
		"vllm-timed-trace": `\{"timestamp": \d+\.\d{1,9}` + lengths + spaced + `\}`,
		"guidellm":         `\{"timestamp": \d+\.\d{1,9}` + lengths + spaced + `\}`,
		"inference-perf":   `TIMESTAMP,ContextTokens,GeneratedTokens|1970-01-\d\d \d\d:\d\d:\d\d\.\d{7},\d+,\d+`,
		"openai-batch": `\{"custom_id": "request-\d+", "method": "POST", "url": "/v1/(chat/completions|completions|embeddings)", ` +
			`"body": \{"model": "[^"]+", ("messages": \[\{"role": "user", "content": "[^"]+"\}\]|"prompt": "[^"]+"), "max_tokens": [1-9]\d*(, "temperature": [0-9.e+-]+)?\}\}`,
		"blis": `request_id,.*,finish_reason|\d+(,[^,]*){4},\d+,,0,(true|false)(,\d+){6},(0|1|0\.\d+),[^,]*,0,0(,\d+){4},0,(ok|incomplete|error),,[a-z_]*`,
	}
	compiled := map[string]*regexp.Regexp{}
	for name, form := range forms {
		compiled[name] = regexp.MustCompile(`^(` + form + `)$`)
	}
	return compiled
}()

// randomRows makes rows in order of arrival, with blocks of size that are
// chained as in a trace: an id is one block behind one prefix.
func randomRows(rng *rand.Rand, n, size int) []trace.Request {
	rows := make([]trace.Request, n)
	known := map[string]uint64{}
	turns := map[int64]int32{}
	last := map[int64]int64{}
	maybe := func() bool { return rng.IntN(2) == 0 }
	for i := range rows {
		r := &rows[i]
		if i > 0 {
			r.ArrivalNS = rows[i-1].ArrivalNS + int64(rng.IntN(3))*rng.Int64N(1e10)
		}
		r.InputTokens, r.OutputTokens = int32(rng.IntN(5*size)), trace.Ptr(int32(rng.IntN(300)))
		if maybe() {
			r.InputTokens = r.InputTokens / int32(size) * int32(size)
		}
		r.Model, r.Status = "model-0", []string{"", trace.StatusOK, trace.StatusFailed, trace.StatusCancelled}[rng.IntN(4)]
		prefix := ""
		for b := range blocksOf(r.InputTokens, size) {
			prefix += fmt.Sprint(",", rng.IntN(2))
			if tail := int(r.InputTokens) - b*size; tail < size {
				prefix += fmt.Sprint(" ", tail)
			}
			if _, ok := known[prefix]; !ok {
				known[prefix] = uint64(len(known))
			}
			r.Blocks = append(r.Blocks, known[prefix])
		}
		if maybe() {
			s := rng.Int64N(20)
			if r.Session = &s; maybe() {
				r.Turn = trace.Ptr(turns[s])
			}
			if turns[s] > 0 && maybe() {
				r.Parents = []int64{last[s]}
				r.ThinkNS = trace.Ptr(rng.Int64N(1e10))
			}
			turns[s]++
			last[s] = int64(i)
		}
		if maybe() {
			r.Kind, r.Temperature, r.Stream = "completion", trace.Ptr(rng.Float32()), trace.Ptr(maybe())
			r.E2ENS, r.ReasoningTokens, r.FinishReason = trace.Ptr(rng.Int64N(1e10)), trace.Ptr(rng.Int32N(50)), "tool_calls"
			r.Class, r.User, r.Images = trace.Ptr("batch"), trace.Ptr(rng.Int64N(9)), trace.Ptr(rng.Int32N(2))
		}
	}
	return rows
}

// Every line of any trace has the form of its format, is JSON or CSV, and says
// the lengths of its row.
func TestLinesHaveTheirForm(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{3, 16, 20, 64, 512} {
		rows := randomRows(rng, 300, size)
		for _, out := range Formats() {
			file, _, _ := write(t, out.Name, Options{BlockSize: size}, rows)
			lines := strings.Split(strings.TrimSuffix(file, "\n"), "\n")
			if out.top != "" {
				table, err := csv.NewReader(strings.NewReader(file)).ReadAll()
				if err != nil || len(table) != len(lines) {
					t.Fatalf("%s: %v", out.Name, err)
				}
			}
			if want := len(rows) + strings.Count(out.top, "\n"); len(lines) != want {
				t.Fatalf("%s: %d lines, want %d", out.Name, len(lines), want)
			}
			for _, line := range lines {
				if !lineForms[out.Name].MatchString(line) {
					t.Fatalf("%s: %s", out.Name, line)
				}
				if out.top == "" && !json.Valid([]byte(line)) {
					t.Fatalf("%s: not JSON: %s", out.Name, line)
				}
			}
		}
	}
}

// readAll reads text as a log.
func readAll(t *testing.T, in string, o datasets.Options) ([]trace.Entry, datasets.Info) {
	t.Helper()
	open := func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(in)), nil }
	s, err := datasets.OpenFiles([]datasets.File{{Name: "log", Open: open}}, o)
	if err != nil {
		t.Fatal(err)
	}
	return drain(t, s)
}

func drain(t *testing.T, s *datasets.Source) ([]trace.Entry, datasets.Info) {
	t.Helper()
	var all []trace.Entry
	batch := make([]trace.Entry, 100)
	for {
		n, err := s.Read(batch)
		all = append(all, batch[:n]...)
		if err == io.EOF {
			return all, s.Info()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// facts spells what a row and its entry have in common.
func facts(e *trace.Entry) string {
	number := func(n *int32) string {
		if n == nil {
			return "?"
		}
		return fmt.Sprint(*n)
	}
	return fmt.Sprintf("%v in=%s out=%s max=%s blocks=%v, %d messages", e.Time, number(e.InputTokens), number(e.OutputTokens), number(e.MaxTokens), e.SourceBlocks, len(e.Messages))
}

// reread reads what a writer wrote and compares arrival, lengths and, with
// size, blocks.
func reread(t *testing.T, file string, o datasets.Options, rows []trace.Request, unit time.Duration, blocks bool) []trace.Entry {
	t.Helper()
	o.AllowLongSpan = true
	all, info := readAll(t, file, o)
	if len(all) != len(rows) || info.Bad != 0 {
		t.Fatalf("%d rows of %d, %d bad: %v", len(all), len(rows), info.Bad, info.FirstBad)
	}
	for i := range all {
		e, r := &all[i], &rows[i]
		if e.InputTokens != nil && *e.InputTokens != r.InputTokens || e.OutputTokens != nil && *e.OutputTokens != *r.OutputTokens {
			t.Fatalf("row %d is read as %s", i, facts(e))
		}
		if at := time.Duration(r.ArrivalNS); !e.Time.IsZero() && e.Time.Sub(datasets.Epoch) != at.Round(unit) {
			t.Fatalf("row %d is read as %s, want %v", i, facts(e), at)
		}
		if blocks && !slices.Equal(e.SourceBlocks, r.Blocks) {
			t.Fatalf("row %d is read as %s", i, facts(e))
		}
	}
	return all
}

func TestWrittenTracesReadBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	rows := randomRows(rng, 400, 512)
	mapped := func(spec ...string) datasets.Mapping {
		m, err := datasets.ParseMapping(spec)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	trades := mapped("time=timestamp", "input_tokens=input_length", "output_tokens=output_length", "blocks=hash_ids")

	file, _, _ := write(t, "mooncake", Options{BlockSize: 512}, rows)
	reread(t, file, datasets.Options{Format: "mooncake", TimeUnit: "ms"}, rows, time.Millisecond, true)

	file, _, _ = write(t, "guidellm", Options{BlockSize: 512}, rows)
	reread(t, file, datasets.Options{Format: "jsonl", Map: trades, BlockSize: 512, TimeUnit: "s"}, rows, 1, true)

	file, _, _ = write(t, "inference-perf", Options{}, rows)
	reread(t, file, datasets.Options{Format: "azure-2023"}, rows, 100, false)

	small := randomRows(rng, 400, 16)
	for _, name := range []string{"bailian", "vllm-timed-trace"} {
		file, _, _ = write(t, name, Options{BlockSize: 16}, small)
		reread(t, file, datasets.Options{Format: "jsonl", Map: trades, BlockSize: 16, TimeUnit: "s"}, small, 1, true)
	}

	file, _, _ = write(t, "openai-batch", Options{}, rows)
	checkBatch(t, rows, reread(t, file, datasets.Options{Format: "jsonl", Map: mapped("messages=body.messages", "prompt=body.prompt", "model=body.model",
		"max_tokens=body.max_tokens", "temperature=body.temperature")}, rows, 1, false))
}

// checkBatch compares what a batch says of requests.
func checkBatch(t *testing.T, rows []trace.Request, all []trace.Entry) {
	t.Helper()
	for i := range all {
		e, r := &all[i], &rows[i]
		if *e.MaxTokens != max(*r.OutputTokens, 1) || len(e.Messages) != 1 || e.Messages[0].Content.Reveal() != "some words" ||
			(e.Temperature == nil) != (r.Temperature == nil) || e.Temperature != nil && *e.Temperature != *r.Temperature {
			t.Fatalf("row %d is read as %s", i, facts(e))
		}
	}
}

// What has a reader of the same name is read by it.
func TestWrittenTracesReadBackByTheirReaders(t *testing.T) {
	for _, f := range datasets.Formats() {
		unit, size := time.Duration(0), 512
		switch f.Name {
		case "mooncake", "aiperf":
			unit = time.Millisecond
		case "bailian":
			unit, size = 1, 16
		case "openai-batch":
		default:
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			rows := randomRows(rand.New(rand.NewPCG(13, 14)), 200, size)
			for i := range rows {
				if rows[i].Session = nil; f.Name == "aiperf" {
					rows[i].Parents, rows[i].ThinkNS = nil, nil // a later turn has no arrival
				}
			}
			file, _, _ := write(t, f.Name, Options{BlockSize: size}, rows)
			all := reread(t, file, datasets.Options{Format: f.Name}, rows, unit, unit != 0)
			if unit == 0 {
				checkBatch(t, rows, all)
			}
		})
	}
}

// Sessions are the same after the way through parent_chat_id, as AIPerf joins
// them, and through AIPerf's session_id.
func TestConversationsReadBack(t *testing.T) {
	rows := randomRows(rand.New(rand.NewPCG(5, 6)), 400, 16)
	for i := range rows {
		rows[i].Turn = nil // so that every row of a session has the one before as its parent
	}
	file, _, _ := write(t, "bailian", Options{BlockSize: 16}, rows)
	aiperf, _, _ := write(t, "aiperf", Options{BlockSize: 16}, rows)
	second := strings.Split(aiperf, "\n")
	root := map[int64]int64{} // chat to the root of its conversation
	session := map[int64]int64{}
	turns := map[int64]int{}
	for i, line := range strings.Split(strings.TrimSpace(file), "\n") {
		var chat struct{ Chat_ID, Parent_Chat_ID, Turn int64 }
		var trip struct {
			Session_ID       *string
			Timestamp, Delay *int64
		}
		if json.Unmarshal([]byte(line), &chat) != nil || json.Unmarshal([]byte(second[i]), &trip) != nil || chat.Chat_ID != int64(i) {
			t.Fatal(line)
		}
		r := &rows[i]
		root[chat.Chat_ID] = chat.Chat_ID
		if chat.Parent_Chat_ID >= 0 {
			root[chat.Chat_ID] = root[chat.Parent_Chat_ID]
		}
		if (trip.Session_ID == nil) != (r.Session == nil) || r.Session != nil && *trip.Session_ID != fmt.Sprint(*r.Session) {
			t.Fatalf("row %d: %s", i, second[i])
		}
		if (trip.Delay != nil) == (trip.Timestamp != nil) || (trip.Delay != nil) != (r.ThinkNS != nil) {
			t.Fatalf("row %d: %s", i, second[i])
		}
		if r.Session == nil {
			continue
		}
		at, ok := session[*r.Session]
		if !ok {
			at = chat.Chat_ID
			session[*r.Session] = at
		}
		turns[at]++
		if root[chat.Chat_ID] != at || chat.Turn != int64(turns[at]) {
			t.Fatalf("row %d of session %d is in conversation %d, turn %d", i, *r.Session, root[chat.Chat_ID], chat.Turn)
		}
	}
}

func TestWriterErrors(t *testing.T) {
	for _, c := range []struct {
		name, want string
		o          Options
		usage      bool
	}{
		{"parquet", "unknown format to write: want one of mooncake, bailian,", Options{}, true},
		{"guidellm", "the block size is negative", Options{BlockSize: -1}, true},
		{"bailian", "the trace has no block ids, which the format bailian needs", Options{}, false},
		{"vllm-custom", "the format vllm-custom holds prompts", Options{}, true},
		{"blis", "the format blis has a second file", Options{}, true},
		{"blis", "disk full", Options{Header: full{}}, false},
	} {
		if _, err := NewWriter(c.name, io.Discard, c.o); err == nil || !strings.HasPrefix(err.Error(), c.want) || errors.Is(err, datasets.ErrUsage) != c.usage {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	good := trace.Request{InputTokens: 40, Blocks: []uint64{0, 1, 2}, Model: "m"}
	for _, c := range []struct {
		name, want string
		p          Prompter
		row        trace.Request
	}{
		{"mooncake", "row 1 has a negative arrival or length", nil, trace.Request{ArrivalNS: -1}},
		{"blis", "row 1 has a negative arrival or length", nil, trace.Request{OutputTokens: trace.Ptr[int32](-7)}},
		{"bailian", "row 1 does not have a block id for each block", nil, trace.Request{InputTokens: 17, Blocks: []uint64{1}}},
		{"sglang", "row 1 does not have a block id for each block", nil, trace.Request{InputTokens: 17}},
		{"aiperf", "row 1 does not have a block id for each block", nil, trace.Request{InputTokens: 17, Blocks: []uint64{1}}},
		{"guidellm", "row 1 does not have a block id for each block", nil, trace.Request{InputTokens: 17}},
		{"guidellm", "row 1 has a block id above 2147483647", nil, trace.Request{InputTokens: 1, Blocks: []uint64{1 << 31}}},
		{"vllm-timed-trace", "row 1 does not have a block id for each block", nil, trace.Request{InputTokens: 17}},
		{"vllm-timed-trace", "row 1 has a block id too large", nil, trace.Request{InputTokens: 1, Blocks: []uint64{1 << 63}}},
		{"openai-batch", "row 1 names no model", nil, trace.Request{InputTokens: 1}},
		{"openai-batch", "row 0 cannot be turned into a prompt: nothing to say", stub(""), good},
	} {
		if c.p == nil {
			c.p = stub("x")
		}
		w, err := NewWriter(c.name, io.Discard, Options{BlockSize: 16, Prompter: c.p, Header: io.Discard})
		if err != nil {
			t.Fatal(err)
		}
		n, err := w.Write([]trace.Request{good, c.row})
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || fmt.Sprint("row ", n) != c.want[:5] {
			t.Errorf("%s: %d, %v", c.name, n, err)
		}
	}
	for _, out := range Formats() {
		w, err := NewWriter(out.Name, full{}, Options{BlockSize: 16, Prompter: stub("x"), Header: io.Discard})
		if err == nil {
			_, err = w.Write(slices.Repeat([]trace.Request{good}, 100))
			err = errors.Join(err, w.Close())
		}
		if !errors.Is(err, errFull) {
			t.Errorf("%s: a full disk: %v", out.Name, err)
		}
	}
}

var errFull = errors.New("disk full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

// Formats that need no blocks write a trace that has none.
func TestTracesWithoutBlocks(t *testing.T) {
	row := trace.Request{ArrivalNS: 2_000_000_000, InputTokens: 700, OutputTokens: trace.Ptr[int32](3), Model: "m"}
	for name, want := range map[string]string{
		"aiperf":   `{"timestamp": 2000, "input_length": 700, "output_length": 3}`,
		"guidellm": `{"timestamp": 2.0, "input_length": 700, "output_length": 3}`,
	} {
		if got, _, _ := write(t, name, Options{}, []trace.Request{row}); got != want+"\n" {
			t.Errorf("%s: %s", name, got)
		}
	}
	for _, out := range Formats() {
		_, err := NewWriter(out.Name, io.Discard, Options{Prompter: stub("x"), Header: io.Discard})
		if (err != nil) != out.NeedsBlocks {
			t.Errorf("%s: %v", out.Name, err)
		}
	}
}
