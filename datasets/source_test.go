package datasets

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/record"
	"reprise/trace"
)

// readAll reads entries to their end, in batches of a size that seldom divides their number.
func readAll(r trace.EntryReader) (all []trace.Entry, err error) {
	for batch := make([]trace.Entry, 3); err == nil; {
		var n int
		n, err = r.Read(batch)
		all = append(all, batch[:n]...)
	}
	if err == io.EOF {
		err = nil
	}
	return all, err
}

// readOpened reads a whole source, if it could be opened.
func readOpened(s *Source, err error) ([]trace.Entry, Info, error) {
	if err != nil {
		return nil, Info{}, err
	}
	all, err := readAll(s)
	return all, s.Info(), err
}

func read(in io.Reader, o Options) ([]trace.Entry, Info, error) { return readOpened(Open(in, o)) }

func readTogether(files []File, o Options) ([]trace.Entry, Info, error) {
	return readOpened(OpenFiles(files, o))
}

func readAs(format string, files []File, o Options) ([]trace.Entry, Info, error) {
	o.Format = format
	return readTogether(files, o)
}

func mustRead(t testing.TB, in string, o Options) ([]trace.Entry, Info) {
	t.Helper()
	all, info, err := read(strings.NewReader(in), o)
	if err != nil {
		t.Fatal(err)
	}
	return all, info
}

// published opens a public trace that the project does not ship.
func published(t testing.TB, name string) *os.File {
	t.Helper()
	f, err := os.Open(filepath.Join("../../shared/data", name))
	if err != nil {
		t.Skipf("the public trace %s is not here", name)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// summary spells what matters of an entry, for comparison in tests.
func summary(e *trace.Entry) string {
	var b strings.Builder
	if !e.Time.IsZero() {
		fmt.Fprintf(&b, "%v ", e.Time.Sub(Epoch))
	}
	name := func(label string, t trace.Text) {
		if t != (trace.Text{}) {
			fmt.Fprintf(&b, "%s=%s ", label, t.Reveal())
		}
	}
	name("user", e.User)
	name("session", e.Session)
	name("response", e.Response)
	name("previous", e.Previous)
	name("model", e.Model)
	name("adapter", e.Adapter)
	name("salt", e.Salt)
	name("prefix", e.PrefixKey)
	name("class", e.Class)
	name("replica", e.Replica)
	if e.Thread != nil && *e.Thread > 0 {
		fmt.Fprintf(&b, "thread=%d ", *e.Thread)
	}
	if e.Turn != nil {
		fmt.Fprintf(&b, "turn=%d after=%v ", *e.Turn, e.Parents)
	}
	name("tools", e.Tools)
	for _, m := range e.Messages {
		fmt.Fprintf(&b, "%v:%q ", m.Role, m.Content.Reveal())
		name("calls", m.Calls)
		name("call", m.CallID)
		name("name", m.Name)
	}
	if e.Reply != nil {
		fmt.Fprintf(&b, "reply=%q ", e.Reply.Reveal())
		name("replycalls", e.ReplyCalls)
	}
	for _, c := range []struct {
		label string
		n     *int32
	}{{"in", e.InputTokens}, {"out", e.OutputTokens}, {"cached", e.Cached}, {"reasoning", e.Reasoning}, {"images", e.Images}, {"max", e.MaxTokens}} {
		if c.n != nil {
			fmt.Fprintf(&b, "%s=%d ", c.label, *c.n)
		}
	}
	if e.SourceBlocks != nil {
		fmt.Fprintf(&b, "blocks=%v ", e.SourceBlocks)
	}
	if e.Temperature != nil {
		fmt.Fprintf(&b, "temperature=%g ", *e.Temperature)
	}
	if e.Stream != nil {
		fmt.Fprintf(&b, "stream=%v ", *e.Stream)
	}
	for _, w := range []string{e.Kind, e.Status, e.FinishReason} {
		if w != "" {
			b.WriteString(w + " ")
		}
	}
	if e.TTFT != nil {
		fmt.Fprintf(&b, "ttft=%v ", *e.TTFT)
	}
	if e.E2E != nil {
		fmt.Fprintf(&b, "e2e=%v ", *e.E2E)
	}
	return strings.TrimSpace(b.String())
}

// Formats are told by the keys and the values that an input begins with, also where a first record
// is longer than what is looked at.
func TestDetect(t *testing.T) {
	for in, want := range map[string]string{
		`{"timestamp":0.0,"input_length":8,"output_length":1,"hash_ids":[0],"delay":3}`:                            "dynamo",
		`{"input_tokens":8,"output_tokens":2,"created_time":12.5,"hash_ids":[0]}`:                                  "dynamo",
		`{"timestamp":1000,"input_length":300,"output_length":40}`:                                                 "dynamo",
		`{"request_id":"r","input_length":8,"output_length":1,"hash_ids":[0],"timestamp":0.0,"prefix_reset":true}`: "dynamo",
		`{"timestamp":0,"input_length":8,"output_length":1,"hash_ids":[0],"request_id":"r"}`:                       "mooncake",
		`{"payload":{"prompt":"p"},"timestamp":1}`:                                                                 "aiperf",
		`{"session_id":"s","message_mode":"delta","messages":[]}`:                                                  "aiperf",
		`{"payload":{"prompt":"p"},"timestamp":1,"level":"info"}`:                                                  "",
		`{"chat_id":5,"messages":[],"timestamp":1}`:                                                                "openai-log",
		`[{"id":"x","block_size":64,"requests":[{"t":0`:                                                            "weka",
		`{"id":"x","models":[],"block_size":64,"requests":[` + strings.Repeat(`{"t":0},`, 10_000):                  "weka",
		"Log Type,Response tokens,Timestamp,Request tokens\n":                                                      "burstgpt",
		azureHeader: "azure-2023",
		azureHeader + "x,1,2\n2024-05-10 00:00:00+00:00,1,2\n":                                                                                             "azure-2024",
		"GeneratedTokens,ContextTokens,NumImages,TIMESTAMP\n1,2,3,2024-10-15 12:00:00.269\n":                                                               "azure-2025",
		claudeAsks("u1", "", 1, "'isSidechain':false,'x':'"+strings.Repeat("z", 100_000)+"'"):                                                              "claude-code",
		`{"type":"summary","summary":"zebra","leafUuid":"x"}` + "\n" + claudeAsks("u1", "", 1):                                                             "claude-code",
		`{"uuid":"u2","parentUuid":"u1","sessionId":"q1","timestamp":"2026-02-23T14:24:56.857Z","type":"assistant","message":{"role":"model","parts":[]}}`: "",
		codexMetaLine("1", "s", "'base_instructions':{'text':'"+strings.Repeat("z", 100_000)+"'}"):                                                         "codex",
		codexLine("1,7", "world_state", ""):                                                                                                                "codex",
		"not JSON\n" + codexLine("1", "compacted", ""):                                                                                                     "codex",
		`{"timestamp":5,"type":"zebra","payload":{"prompt":"p"}}`:                                                                                          "aiperf",
		`{"payload":{"type":"token_count"},"timestamp":"1970-01-01","type":"event_msg"}`:                                                                   "codex",
		`{"timestamp":1000,"payload":{"messages":[{"role":"user","content":"x"}]}}` + "\n":                                                                 "aiperf",
		`{"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": [0]}`:                                                                         "mooncake",
		"not json\n" + `{"hash_ids":[],"input_length":0,"timestamp":0}` + "\n":                                                                             "mooncake",
		"TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:17:03.9799600,4808,10":                                                                   "azure-2023",
		"NumImages,GeneratedTokens,ContextTokens,TIMESTAMP\n":                                                                                              "azure-2025",
		"\xef\xbb\xbf [\n {\"id\":\"a\",\"conversations\":[{\"from\":\"human\",\"value\":\"cut":                                                            "sharegpt",
		`[{"conversation":[]}]`: "sharegpt",
		`{"ts":1,"messages":[{"role":"user","content":"cut` + "off": "openai-log",
		"\n\n" + `{"prompt":"x","usage":{}}`:                        "openai-log",
		`{"timestamp":1,"input_length":3}`:                          "",
		`[{"messages":[]}]`:                                         "openai-log",
		"a,b\n1,2\n":                                                "",
		"PAR1\x00\x01":                                              "parquet",
		strings.Repeat("[", 70_000):                                 "",
		`{"usage":{"messages":1}}`:                                  "",
		"\xff\xfe{\x00":                                             "",
		`{"a":` + strings.Repeat(`{"a":`, 20_000) + `}` + "\n{\"b\":1}": "",
	} {
		head := in[:min(len(in), record.HeadBytes)]
		f, err := detectFormat([]byte(head))
		if want == "" {
			if err == nil {
				t.Errorf("%.40q was taken for %s", head, f.Name)
			} else if err.Error() != "unrecognised format" {
				t.Error(err)
			}
		} else if err != nil || f.Name != want {
			t.Errorf("%.40q: %q, %v; want %s", head, f.Name, err, want)
		}
	}
	if _, err := detectFormat([]byte(" \r\n")); err == nil || !strings.Contains(err.Error(), "empty") {
		t.Errorf("an empty input: %v", err)
	}
}

// The example of each format is one that it reads, and by content where that
// can be told.
func TestFormatsReadTheirExamples(t *testing.T) {
	options := map[string]Options{
		"jsonl": {Map: Mapping{"time": {"t"}, "input_tokens": {"usage.prompt_tokens"}, "output_tokens": {"usage.completion_tokens"}}},
		"csv":   {Map: Mapping{"input_tokens": {"prompt_tokens"}, "output_tokens": {"completion_tokens"}}},
	}
	for _, f := range Formats() {
		in := f.Example
		if f.Name == "csv" {
			in += "\n1,2,3"
		}
		if f.open == nil || f.Name == "parquet" {
			continue // several files, and no text
		}
		all, info := mustRead(t, in, options[f.Name])
		if len(all) != 1 || info.Format != f.Name || info.Records != 1 || f.About == "" {
			t.Errorf("%s: %d entries, %+v", f.Name, len(all), info)
		}
	}
}

func TestUsageErrors(t *testing.T) {
	mapping := Mapping{"input_tokens": {"n"}}
	for name, c := range map[string]struct {
		in   string
		o    Options
		want string
	}{
		"unknown format":       {`{}`, Options{Format: "sharegtp"}, `unknown format "sharegtp"; did you mean sharegpt? (the formats are listed by reprise import --help-all, and without --format it is detected)`},
		"format by its maker":  {`{}`, Options{Format: "openai"}, `unknown format "openai"; did you mean openai-batch, openai-log?`},
		"format unlike others": {`{}`, Options{Format: "zzzzzzzzzz"}, `unknown format "zzzzzzzzzz" (the formats`},
		"share":                {`{"prompt":""}`, Options{MaxBad: 2}, "from 0 to 1"},
		"unit":                 {`{"prompt":""}`, Options{TimeUnit: "min"}, "want s, ms, us or ns"},
		"unit without times":   {`[]`, Options{Format: "sharegpt", TimeUnit: "s"}, "--time-unit"},
		"unit of dates":        {"", Options{Format: "litellm-spend", TimeUnit: "s"}, "--time-unit"},
		"map of fixed format":  {`{}`, Options{Format: "mooncake", Map: mapping}, "--map"},
		"jsonl without map":    {`{}`, Options{Format: "jsonl"}, "targets: time, input_tokens"},
		"csv without map":      {`{}`, Options{Format: "csv"}, "--map"},
		"map without input":    {`{"u":1}`, Options{Map: Mapping{"user": {"u"}}}, "messages, prompt and input_tokens"},
		"blocks without size":  {`{}`, Options{Map: Mapping{"input_tokens": {"n"}, "blocks": {"b"}}}, "--source-block-size"},
		"size without blocks":  {`{}`, Options{Map: mapping, BlockSize: 16}, "--source-block-size"},
		"size in a known form": {`{}`, Options{Format: "bailian", BlockSize: 16}, "--source-block-size"},
	} {
		_, _, err := read(strings.NewReader(c.in), c.o)
		if !errors.Is(err, fault.ErrUsage) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

const oneRow = `{"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": [0]}` + "\n"

func TestBadRowsAreLocatedAndCounted(t *testing.T) {
	in := oneRow + "\n" + `{"timestamp": 0, "input_length": -1, "output_length": 1, "hash_ids": []}` + "\r\n" + oneRow + "{oops}\n" + oneRow
	all, info := mustRead(t, in, Options{MaxBad: 0.5})
	if len(all) != 3 || info.Records != 3 || info.Bad != 2 || len(info.FirstBad) != 2 {
		t.Fatalf("%d entries, %+v", len(all), info)
	}
	for i, want := range []string{"log:3:34: input_tokens: want a whole number", "log:5:2: it is not valid JSON"} {
		if got := info.FirstBad[i].Error(); !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	all, _, err := read(strings.NewReader(in), Options{MaxBad: 0.3})
	var tooBad *tooManyBad
	if !errors.As(err, &tooBad) || tooBad.Bad != 2 || tooBad.Rows != 5 || len(all) != 3 {
		t.Fatalf("%d entries, %v", len(all), err)
	}
	for _, want := range []string{"2 of 5 records are bad, more than the tolerated 30 %", "log:3:34", "log:5:2"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not contain %q", err, want)
		}
	}
	var first *trace.SourceError
	if !errors.As(err, &first) || first.Line != 3 {
		t.Errorf("the first place is not in the error")
	}
}

// Before the end, only ten times too many bad rows stop the reading, and not
// before 10,000 rows.
func TestHopelessSourcesStopEarly(t *testing.T) {
	rows := func(bad int) io.Reader {
		return io.MultiReader(strings.NewReader(strings.Repeat("[]\n", bad)), strings.NewReader(oneRow+strings.Repeat(oneRow, 19_999)))
	}
	for _, c := range []struct {
		bad      int
		maxBad   float64
		wantRead int // entries
		wantErr  bool
	}{
		{20, 0.001, 20_000, false},
		{30, 0.001, 20_000, true}, // judged at the end
		{101, 0.001, 9_899, true}, // hopeless at row 10,000
		{1, 0, 9_999, true},       // cannot be made up for
	} {
		n := 0
		s, err := Open(rows(c.bad), Options{Format: "mooncake", MaxBad: c.maxBad})
		for batch := make([]trace.Entry, 7); err == nil; {
			var m int
			m, err = s.Read(batch)
			n += m
		}
		var tooBad *tooManyBad
		if n != c.wantRead || errors.As(err, &tooBad) != c.wantErr {
			t.Errorf("%d bad rows of 20,000 at %g: %d read, %v", c.bad, c.maxBad, n, err)
		}
	}
}

// Errors of the reader itself keep their identity and get a place.
func TestReadErrors(t *testing.T) {
	for _, format := range []string{"mooncake", "azure-2023", "sharegpt", "openai-log"} {
		in := map[string]string{
			"mooncake":   oneRow,
			"azure-2023": "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03,4808,10\n",
			"sharegpt":   `[{"id":1,"conversations":[{"from":"user","value":""},{"from":"gpt","value":""}]},`,
			"openai-log": `{"prompt":"x"}` + "\n",
		}[format]
		torn := errors.New("torn cable")
		_, _, err := read(io.MultiReader(strings.NewReader(in), iotest.ErrReader(torn)), Options{Format: format})
		var at *trace.SourceError
		if !errors.Is(err, torn) || !errors.As(err, &at) || at.Line == 0 {
			t.Errorf("%s: %v", format, err)
		}
	}
}

func TestByteOrderMarkAndLineEnds(t *testing.T) {
	row := strings.TrimSpace(oneRow)
	for _, in := range []string{row, "\xef\xbb\xbf" + row, row + "\r\n", "\r\n" + row + "\n\n\r\n"} {
		if all, _ := mustRead(t, in, Options{}); len(all) != 1 {
			t.Errorf("%.10q: %d entries", in, len(all))
		}
	}
	azure := "\xef\xbb\xbfTIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:17:03.9799600,4808,10\r\n\r\n2023-11-16 18:17:03.9799600,4808,10"
	if all, _ := mustRead(t, azure, Options{}); len(all) != 2 {
		t.Errorf("%d rows of CSV", len(all))
	}
}

// The records of an answer of an API are known by their content too.
func TestEnvelopeIsDetected(t *testing.T) {
	in := `{"data":[{"messages":[{"role":"user","content":"q"}]}],"has_more":false}`
	if info := wantEntries(t, in, Options{}, `user:"q" chat`); info.Format != "openai-log" {
		t.Errorf("read as %s", info.Format)
	}
}

// Every field of the batch is overwritten.
func TestReadOverwrites(t *testing.T) {
	s, err := Open(strings.NewReader(oneRow+oneRow), Options{})
	if err != nil {
		t.Fatal(err)
	}
	batch := make([]trace.Entry, 2)
	for i := range batch {
		batch[i] = trace.Entry{User: trace.NewText("left over"), Time: time.Now(), Parents: []int64{1}}
	}
	if n, err := s.Read(batch); n != 2 || err != nil && err != io.EOF {
		t.Fatal(n, err)
	}
	for i := range batch {
		if got := summary(&batch[i]); got != "0s in=1 out=1 blocks=[0]" {
			t.Errorf("entry %d: %s", i, got)
		}
	}
}

func newTestBuffer(r io.Reader) *bufio.Reader { return bufio.NewReaderSize(r, 4096) }
