package datasets

import (
	"errors"
	"io"
	"strings"
	"testing"

	"reprise/trace"
)

const (
	batchAsk    = `{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"model":"m","messages":[{"role":"user","content":"q"}],"max_tokens":50}}` + "\n"
	batchAnswer = `{"id":"x","custom_id":"a","response":{"status_code":200,"request_id":"r","body":{"created":1767323045,"choices":[{"message":{"content":"w"},"finish_reason":"length"}],"usage":{"prompt_tokens":7,"completion_tokens":9,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":2}}}},"error":null}` + "\n"
	batchWhole  = `model=m user:"q" reply="w" in=7 out=9 cached=4 reasoning=2 max=50 chat ok length`
)

// Requests and responses meet whichever comes first, in one file or in several.
func TestBatchJoins(t *testing.T) {
	for name, in := range map[string][]string{
		"one file":       {batchAsk + batchAnswer},
		"answer first":   {batchAnswer + batchAsk},
		"two files":      {batchAsk, batchAnswer},
		"answers first":  {batchAnswer, "\xef\xbb\xbf" + batchAsk},
		"no last line":   {strings.TrimSpace(batchAsk), strings.TrimSpace(batchAnswer)},
		"over two lines": {strings.Replace(batchAsk, ",", ",\n", 1), batchAnswer},
	} {
		f := batchFormat()
		if files := textFiles(in...); !f.detectFiles(append(files, textFiles("\n")...)) {
			t.Errorf("%s: not detected", name)
		}
		all, info, err := readTogether(textFiles(in...), Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		compare(t, all, []string{"490923h4m5s " + batchWhole})
		if !info.HasTimes || info.TimeUnit != "s" || info.Records != 1 {
			t.Errorf("%s: %+v", name, info)
		}
		wantNote(t, info, noteBatchTimes)
	}
}

func TestBatchOrder(t *testing.T) {
	line := func(id string) string { return `{"custom_id":"` + id + `","body":{"prompt":"` + id + `"}}` + "\n" }
	reply := func(id string) string {
		return `{"custom_id":"` + id + `","response":{"status_code":200,"body":{"choices":[{"text":"` + id + `"}],"usage":{"prompt_tokens":1}}}}` + "\n"
	}
	info := wantEntries(t, line("z")+line("y")+line("x")+reply("w")+reply("x")+reply("z"), Options{},
		`user:"z" reply="z" in=1 completion ok`, `user:"y" completion`, `user:"x" reply="x" in=1 completion ok`, `reply="w" in=1 ok`)
	wantNote(t, info, noteUnanswered+": 1")
	wantNote(t, info, noteUnasked+": 1")
	if info.HasTimes {
		t.Error("times were made of nothing")
	}
}

// The time of one exchange that is missing takes away those of all.
func TestBatchTimesAllOrNone(t *testing.T) {
	for _, other := range []string{
		strings.ReplaceAll(batchAsk, `"a"`, `"b"`),
		strings.ReplaceAll(batchAsk+strings.Replace(batchAnswer, `"created":1767323045,`, ``, 1), `"a"`, `"b"`),
		strings.ReplaceAll(batchAsk+strings.Replace(batchAnswer, `1767323045`, `17`, 1), `"a"`, `"b"`),
		strings.ReplaceAll(batchAsk+strings.Replace(batchAnswer, `1767323045`, `1867323045`, 1), `"a"`, `"b"`), // years apart
	} {
		all, info := mustRead(t, batchAsk+batchAnswer+other, Options{})
		if len(all) != 2 || info.HasTimes || !all[0].Time.IsZero() || !all[1].Time.IsZero() {
			t.Errorf("%v of %d entries, %q", info.HasTimes, len(all), other)
		}
	}
}

func TestBatchQuirks(t *testing.T) {
	body := func(url, body string) string {
		return `{"custom_id":"a","url":"` + url + `","body":` + body + "}\n"
	}
	for in, want := range map[string]string{
		body("/v1/completions", `{"prompt":[5,6,7]}`):                                                           "in=3 completion",
		body("/v1/embeddings", `{"input":"e"}`):                                                                 `user:"e" embedding`,
		body("/v1/embeddings", `{"input":["e","f"]}`):                                                           `user:"e" user:"f" embedding`,
		body("/v1/embeddings", `{"input":[[5,6],[7]]}`):                                                         `in=3 embedding`,
		body("/v1/embeddings", `{"input":["e"]}`):                                                               `user:"e" embedding`,
		body("/v1/responses", `{"input":"e","max_output_tokens":3}`):                                            `user:"e" responses max=3`,
		body("/v1/responses", `{"input":"e","instructions":"i"}`):                                               `system:"i" user:"e" responses`,
		body("/v1/responses", `{"input":[{"role":"user","content":"e"}]}`):                                      `user:"e" responses`,
		body("https://x/openai/deployments/d/chat/completions", `{"messages":[{"role":"user","content":"e"}]}`): `user:"e" chat`,
		batchAsk + `{"custom_id":"a","response":{"status_code":400,"body":{"error":{"code":"x"}}}}`:             `model=m user:"q" max=50 chat failed`,
		batchAsk + `{"custom_id":"a","response":null,"error":{"code":"batch_expired"}}`:                         `model=m user:"q" max=50 chat failed`,
		body("/v1/chat/completions", `{"messages":[{"role":"user","content":"e"}]}`) + `{"custom_id":"a","response":{"body":{"usage":{"input_tokens":2,"output_tokens":3,"input_tokens_details":{"cached_tokens":1}}}}}`: `user:"e" chat in=2 out=3 cached=1`,
	} {
		wantEntries(t, in, Options{}, want)
	}
	info := wantEntries(t, `{"custom_id":"a","error":{"code":"x"}}`, Options{})
	wantNote(t, info, noteEmptyAnswer+": 1")
	info = wantEntries(t, body("/v1/chat/completions", `{"messages":[{"role":"user"}]}`), Options{})
	wantNote(t, info, noteUnknownInput+": 1")
}

func TestBatchFaults(t *testing.T) {
	for in, want := range map[string]string{
		`{"custom_id":"a","body":{}}`:                           `log:1:25: its body has no messages`,
		`{"custom_id":"","body":{"prompt":"x"}}`:                `log:1:14: custom_id: want a string`,
		`{"body":{"prompt":"x"}}`:                               `log:1:1: custom_id: want a string`,
		`{"custom_id":"a","body":{"prompt":7}}`:                 `log:1:35: prompt: want a text`,
		batchAsk + batchAsk:                                     `log:2:14: an earlier line has the same custom_id`,
		batchAnswer + batchAnswer:                               `log:2:23: an earlier line has the same custom_id`,
		batchAsk + `{"custom_id":"b","response":{"status_code"`: `log:2:43: unexpected end of file`,
		`{"custom_id":"a","response":{"status_code":7000,"body":{"usage":{"prompt_tokens":1}}}}`: `log:1:44: status: want an HTTP status`,
		`[1]` + "\n": `log:1:2: it is not a JSON object`,
	} {
		wantBad(t, in, Options{Format: "openai-batch"}, want)
	}
	// A line at fault leaves its exchange as it was.
	all, info, err := read(strings.NewReader(batchAsk+strings.Replace(batchAnswer, `"prompt_tokens":7`, `"prompt_tokens":-7`, 1)+batchAnswer), Options{MaxBad: 0.9})
	if err != nil || info.Bad != 1 {
		t.Fatalf("%+v, %v", info, err)
	}
	compare(t, all, []string{"490923h4m5s " + batchWhole})
}

// Errors name the file that they are in, and lines are counted within it.
func TestErrorsNameTheFile(t *testing.T) {
	_, info, err := readTogether(textFiles(batchAsk+"\n"+batchAnswer, "\n{oops}\n"), Options{Format: "openai-batch", MaxBad: 0.9})
	if err != nil || info.Bad != 1 || info.FirstBad[0].Error() != "file2:2:2: it is not valid JSON" {
		t.Errorf("%v, %+v", err, info)
	}
	torn := errors.New("torn cable")
	files := append(textFiles(batchAsk), File{Name: "gone", Open: func() (io.ReadCloser, error) { return nil, torn }})
	_, _, err = readTogether(files, Options{Format: "openai-batch"})
	var at *trace.SourceError
	if !errors.Is(err, torn) || !errors.As(err, &at) || at.File != "gone" {
		t.Errorf("%v", err)
	}
	if batchFormat().detectFiles(files) || batchFormat().detectFiles(nil) || batchFormat().detectFiles(textFiles("")) || batchFormat().detectFiles(textFiles(batchAsk, "{}")) {
		t.Error("files that are not of a batch were taken for one")
	}
}
