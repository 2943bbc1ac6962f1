package datasets

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
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

func FuzzAzure(f *testing.F) {
	f.Add([]byte(fixtures["azure-2023"]))
	f.Add([]byte(azureHeader + "MARK,MARK,MARK\n\"MARK\n\",1,2\n\"MARK\"x,1,2\n2023-11-16 18:17:03,\xff,2\n\"MARK"))
	f.Add([]byte(azureHeader + "2023-11-16 18:17:03.9799600+01:00,1,2\n1700000000,1,2\n"))
	f.Fuzz(func(t *testing.T, in []byte) { fuzz(t, in, Options{Format: "azure-2023"}) })
}

func FuzzShareGPT(f *testing.F) {
	f.Add([]byte(fixtures["sharegpt"]))
	f.Add([]byte(`[{"id":"MARK","conversations":[{"from":"MARK","value":"MARK"}]},{"MARK":MARK},"MARK",[[{}]],{"conversations":["MARK"]}`))
	f.Add([]byte(`[{"conversations":[{"from":"gpt","value":"\"},{MARK"}]} , {"conversation":[{"role":"user","content":"\\"},{"role":"gpt","content":""}]}] MARK`))
	f.Fuzz(func(t *testing.T, in []byte) { fuzz(t, in, Options{Format: "sharegpt"}) })
}

func FuzzOpenAILog(f *testing.F) {
	f.Add([]byte(fixtures["openai-log"]))
	f.Add([]byte(`{"messages":[{"role":"MARK","content":"MARK"}],"ts":"MARK"}` + "\n" + `{"prompt":["MARK",1],"MARK":{"MARK":"MARK"}}` + "\n{MARK\n\"MARK"))
	f.Add([]byte(`{"prompt":"MARK","usage":{"prompt_tokens":"MARK"},"response":{"choices":[{"message":{"content":[{"text":"MARK"},{"type":"image"}]}}]}}`))
	f.Fuzz(func(t *testing.T, in []byte) { fuzz(t, in, Options{Format: "openai-log"}) })
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

// Detection and opening of anything.
func FuzzOpen(f *testing.F) {
	for _, in := range fixtures {
		f.Add([]byte(in))
	}
	f.Add([]byte("MARK"))
	f.Fuzz(func(t *testing.T, in []byte) { fuzz(t, in, Options{}) })
}

func FuzzEnvelope(f *testing.F) {
	f.Add([]byte(`{"data":[{"messages":[{"role":"user","content":"MARK"}]},{"MARK":MARK`))
	f.Add([]byte(`{"meta":"MARK","data":[{"prompt":"MARK"}]}` + "\n" + `{"data":[{"prompt":5}],"MARK":1} MARK`))
	f.Fuzz(func(t *testing.T, in []byte) { fuzz(t, in, Options{Format: "openai-log"}) })
}
