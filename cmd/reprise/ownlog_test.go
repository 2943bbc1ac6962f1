package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"reprise/cmd/reprise/internal/cli"
)

// suggestion is the command line that a message ends with.
func suggestion(t *testing.T, message string) []string {
	t.Helper()
	_, line, ok := strings.Cut(message, "To import it:\n")
	if !ok {
		t.Fatalf("the message suggests no command:\n%s", message)
	}
	for shown := range strings.Lines(line) {
		if n := len(strings.TrimRight(shown, "\n")); n > 80 {
			t.Errorf("a line of %d columns: %s", n, shown)
		}
	}
	words, err := exec.Command("sh", "-c", `reprise() { printf '%s\n' "$@"; }; `+line).Output() // as a paste
	if err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	return strings.Split(strings.TrimSpace(string(words)), "\n")
}

const germanLog = "Datum;Nutzer;Modell;Eingabe-Tokens;Ausgabe-Tokens;Dauer (s)\n" +
	"03.11.2026 09:00:01;ann;klein;1.234;56;1,5\n" +
	"03.11.2026 09:00:03;bob;klein;99;7;0,25\n" +
	"04.11.2026 18:30:00;ann;klein;12;3;0,125\n"

// One's own log becomes a trace by the command that the tool suggests when it is given
// the file and nothing else.
func TestOwnLogByTheToolsOwnWords(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	type message struct {
		Role    string `parquet:"role"`
		Content string `parquet:"content"`
	}
	type structs struct {
		Conversation []message `parquet:"turns,list"`
		Answer       string    `parquet:"answer"`
		Created      int64     `parquet:"created,timestamp(microsecond)"`
	}
	type packed struct {
		Dialog string `parquet:"dialog_json"`
	}
	writeFiles(t, map[string]string{
		"german.csv": germanLog,
		"sharegpt.json": `[{"id":"a_0","conversations":[{"from":"human","value":"Hello there"},{"from":"gpt","value":"Hi!"},` +
			`{"from":"human","value":"And now?"},{"from":"gpt","value":"Now this."}]}]`,
		"own.jsonl": `{"begin":1767323045123,"who":{"customer_id":"a b"},"tokens":{"prompt tokens":120,"completion":{"tokens_out":4}}}` + "\n" +
			`{"begin":1767323046123,"who":{"customer_id":"c"},"tokens":{"prompt tokens":99,"completion":{"tokens_out":5}}}` + "\n",
	})
	writeFiles(t, map[string]string{
		"odd names.csv": "it's when|$HOME input tokens|output `tokens`\n02.01.2026 15:04:05|1.200|3\n02.01.2026 15:05:05|900|3\n",
		"tab.tsv":       "start_time\tprompt_tokens\tlatency_ms\n2026-01-02 15:04:05.123\t1200\t12.5\n2026-01-02 15:04:06.123\t1300\t13.5\n",
		"wide.csv":      "\xff\xfet\x00s\x00;\x00i\x00n\x00p\x00u\x00t\x00 \x00t\x00o\x00k\x00e\x00n\x00s\x00\n\x001\x007\x006\x007\x003\x002\x003\x000\x004\x005\x00;\x007\x00\n\x00",
		"inside.csv":    `time,usage` + "\n" + `1767323045,"{""prompt_tokens"":8,""completion_tokens"":3}"` + "\n" + `1767323046,"{""prompt_tokens"":9}"` + "\n",
		"inside.jsonl":  `{"time":"2026-01-02T15:04:05Z","request":"{\"messages\":[{\"role\":\"user\",\"content\":\"Why?\"}]}","n_prompt_tokens":500}` + "\n",
		"apart.jsonl":   `{"time":"2026-01-02T15:04:05Z","prompt":"` + strings.Repeat("Why? ", 300) + `","prompt_tokens":1100}` + "\n",
		"report.csv":    "Requests of May\n\ninput tokens,output tokens,ms\n5,6,1.5\n7,8,2.5\n",
	})
	if err := parquet.WriteFile("structs.parquet", []structs{
		{[]message{{"system", "Be brief."}, {"user", "Why?"}}, "Because.", 1767323045000000},
		{[]message{{"system", "Be brief."}, {"user", "How?"}}, "So.", 1767323046000000}}); err != nil {
		t.Fatal(err)
	}
	if err := parquet.WriteFile("packed.parquet", []packed{{`[{"role":"user","content":"Why?"}]`}, {`[{"role":"user","content":"How?"}]`}}); err != nil {
		t.Fatal(err)
	}
	for file, c := range map[string]struct {
		suggests string
		code     int
		rows     int
		input    int32 // of the first row
		tells    string
	}{
		"german.csv": {"import german.csv --map time=Datum --map input_tokens=Eingabe-Tokens --map output_tokens=Ausgabe-Tokens" +
			" --map user=Nutzer --map model=Modell --map e2e_s=Dauer (s) -o german.parquet", cli.Failure, 3, 1234,
			"note: read as CSV with ; between the columns, decimal commas\nnote: dates were read as --time-format '%d.%m.%Y %H:%M:%S' says\n"},
		"structs.parquet": {"import structs.parquet --map time=created --map messages=turns --map output=answer -o trace.parquet", cli.Failure, 2, 5, ""},
		"packed.parquet":  {"import packed.parquet --map messages=dialog_json --arrivals poisson:2 -o trace.parquet", cli.Failure, 2, 2, ""},
		"odd names.csv": {"import odd names.csv --map time=it's when --decimal comma --map input_tokens=$HOME input tokens --map output_tokens=output `tokens`" +
			" -o odd names.parquet", cli.Failure, 2, 1200, "| between the columns"},
		"tab.tsv":    {"import tab.tsv --map time=start_time --map input_tokens=prompt_tokens --map e2e_ms=latency_ms -o tab.parquet", cli.Failure, 2, 1200, "tabs between the columns"},
		"wide.csv":   {"import wide.csv --map time=ts --map input_tokens=input tokens -o wide.parquet", cli.Failure, 1, 7, "; between the columns"},
		"inside.csv": {"import inside.csv --map time=time --map input_tokens=usage.prompt_tokens --map output_tokens=usage.completion_tokens -o inside.parquet", cli.Failure, 2, 8, "times in the source: s"},
		"inside.jsonl": {"import inside.jsonl --map time=time --map messages=request.messages --map input_tokens=n_prompt_tokens" +
			" -o inside.parquet", cli.Failure, 1, 500, ""},
		"report.csv":    {"import report.csv --map input_tokens=input tokens --map output_tokens=output tokens --arrivals poisson:2 -o report.parquet", cli.Failure, 2, 5, "1 line above the header"},
		"sharegpt.json": {"import sharegpt.json --arrivals poisson:2 -o sharegpt.parquet", cli.Usage, 2, 2, ""},
		"own.jsonl": {"import own.jsonl --map time=begin --map input_tokens=tokens.prompt tokens --map output_tokens=tokens.completion.tokens_out" +
			" --map user=who.customer_id -o own.parquet", cli.Failure, 2, 120, "times in the source: ms"},
	} {
		t.Run(file, func(t *testing.T) {
			_, message, code := reprise(t, "import", file)
			args := suggestion(t, message)
			if got := strings.Join(args, " "); got != c.suggests || code != c.code {
				t.Fatalf("exit code %d, it suggests\n%s\nwant\n%s", code, got, c.suggests)
			}
			out, told, code := reprise(t, "import", "--inspect", file)
			if code != cli.Good || strings.Join(suggestion(t, out), " ") != c.suggests {
				t.Errorf("--inspect: exit code %d\n%s%s", code, out, told)
			}
			_, told, code = reprise(t, args...)
			if code != cli.Good || !strings.Contains(told, c.tells) {
				t.Fatalf("exit code %d\n%s", code, told)
			}
			if _, rows := publicRows(t, args[len(args)-1]); len(rows) != c.rows || rows[0].InputTokens != c.input {
				t.Errorf("%+v", rows)
			}
		})
	}
}

// Rows that hold only what is new in a turn are not read as whole prompts: the command that
// is suggested reads them.
func TestRowsOfWhatIsNew(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFiles(t, map[string]string{"delta.jsonl": `{"session_id":"a","timestamp":0,"input_length":1100,"output_length":100,"hash_ids":[1,2,3]}` + "\n" +
		`{"session_id":"a","delay":1000,"input_length":60,"output_length":100,"hash_ids":[5]}` + "\n"})
	_, message, code := reprise(t, "import", "delta.jsonl", "-o", "d.parquet")
	args := suggestion(t, message)
	if code != cli.Failure || strings.Join(args, " ") != "import delta.jsonl --rows delta -o d.parquet" {
		t.Fatalf("exit code %d\n%s", code, message)
	}
	out, _, _ := reprise(t, "import", "--inspect", "delta.jsonl")
	if got := strings.Join(suggestion(t, out), " "); got != "import delta.jsonl --rows delta -o delta.parquet" {
		t.Errorf("--inspect suggests %s", got)
	}
	if _, told, code := reprise(t, args...); code != cli.Good || !strings.Contains(told, "2 requests, 2,360 input and 200 output tokens") {
		t.Errorf("exit code %d\n%s", code, told)
	}
}

// LiteLLM's spend logs need no flag: as its API returns them, and as its table is
// exported, also by a spreadsheet.
func TestLiteLLMSpendLogs(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFiles(t, map[string]string{
		"api.json": `[{"request_id":"r1","call_type":"acompletion","api_key":"k","spend":0.01,"total_tokens":160,"prompt_tokens":120,"completion_tokens":40,` +
			`"startTime":"2026-01-02T03:04:05.678000Z","endTime":"2026-01-02T03:04:07.100000Z","completionStartTime":"2026-01-02T03:04:06.000000Z","model":"m",` +
			`"user":"u","metadata":{},"cache_hit":"False","request_tags":[],"messages":{},"response":{},"session_id":"s","status":"success"},` +
			`{"request_id":"r2","call_type":"acompletion","prompt_tokens":8,"completion_tokens":4,"startTime":"2026-01-02T03:04:15.000000Z",` +
			`"endTime":"2026-01-02T03:04:17.000000Z","model":"m","user":"u","metadata":{},"messages":[{"role":"user","content":"Hello"}],"response":{}}]`,
		"table.csv": "request_id,call_type,startTime,endTime,prompt_tokens,completion_tokens,messages,model\n" +
			"r1,acompletion,2026-01-02 03:04:05.678,2026-01-02 03:04:07.1,120,40,{},m\n" +
			`r2,acompletion,2026-01-02 03:04:15,2026-01-02 03:04:17,8,4,"[{""role"":""user"",""content"":""Hello""}]",m` + "\n",
		"excel.csv": "request_id;call_type;startTime;endTime;prompt_tokens;completion_tokens;messages;model\n" +
			"r1;acompletion;02.01.2026 03:04:05,678;02.01.2026 03:04:07,1;120;40;{};m\n" +
			`r2;acompletion;02.01.2026 03:04:15;02.01.2026 03:04:17;8;4;"[{""role"":""user"",""content"":""Hello""}]";m` + "\n",
	})
	for _, file := range []string{"api.json", "table.csv", "excel.csv"} {
		must(t, "import", file, "-o", file+".parquet")
		_, rows := publicRows(t, file+".parquet")
		if len(rows) != 2 || rows[0].InputTokens != 120 || *rows[0].OutputTokens != 40 || rows[1].ArrivalNS != 9_322_000_000 ||
			rows[0].E2ENS == nil || *rows[0].E2ENS != 1_422_000_000 {
			t.Errorf("%s: %+v", file, rows)
		}
	}
}

// The first mistakes with one's own log, and the message that a person gets.
func TestOwnLogMistakes(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFiles(t, map[string]string{
		"german.csv": germanLog,
		"us.csv":     "when,n\n03/11/2026 09:00:01 AM,5\n04/11/2026 09:00:02 AM,6\n",
		"no.csv":     "a,b\n1,2\n",
	})
	const fields = `Fields of all 3 records:
  Datum           always  date, 2026-11-03 09:00 to 2026-11-04 18:30
  Nutzer          always  text, 3 characters
  Modell          always  text, 5 characters
  Eingabe-Tokens  always  whole number, 12 to 1234
  Ausgabe-Tokens  always  whole number, 3 to 56
  Dauer (s)       always  number, 0.125 to 1.5
`
	for args, want := range map[string]string{
		"german.csv": `reprise: german.csv:1:1: unrecognised format
` + fields + `All 3 requests, 2026-11-03 09:00:01 to 2026-11-04 18:30:00 UTC:
  1,345 input tokens by usage
  66 output tokens
To import it:
  reprise import german.csv --map time=Datum --map input_tokens=Eingabe-Tokens \
    --map output_tokens=Ausgabe-Tokens --map user=Nutzer --map model=Modell \
    --map 'e2e_s=Dauer (s)' -o german.parquet
`,
		"german.csv --map time=datum,input_tokens=Eingabe-Tokens --block-size 64 -o t.parquet": `reprise: german.csv:1:1: there is no column "datum" (--map time=datum); did you mean "Datum"?
` + fields + `To import it:
  reprise import german.csv --map time=Datum,input_tokens=Eingabe-Tokens \
    --block-size 64 -o t.parquet
`,
		"us.csv --map time=when,input_tokens=n -o t.parquet": `reprise: us.csv:2:1: the dates can be read in two ways, and none of the first ones decides. Choose one:
  --time-format '%d/%m/%Y %I:%M:%S %p' reads the first as 3 November 2026
  --time-format '%m/%d/%Y %I:%M:%S %p' reads it as 11 March 2026
`,
		"no.csv": `reprise: no.csv:1:1: unrecognised format
Fields of its one record:
  a  always  whole number, 1
  b  always  whole number, 2
It cannot be imported as it is: no field looks like a prompt or its number of tokens.
Name one:
  reprise import no.csv --map input_tokens=FIELD -o no.parquet
`,
	} {
		if _, got, _ := reprise(t, append([]string{"import"}, strings.Fields(args)...)...); got != want {
			t.Errorf("import %s\n%s\nwant\n%s", args, got, want)
		}
	}
	if _, err := os.Stat("t.parquet"); err == nil {
		t.Error("a trace was written")
	}
}
