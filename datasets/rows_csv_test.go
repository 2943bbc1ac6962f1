package datasets

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

const azureHeader = "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"

func TestAzureRows(t *testing.T) {
	for in, want := range map[string]string{
		azureHeader + "2023-11-16 18:17:03.9799600,4808,10":                              "2023-11-16T18:17:03.97996Z in=4808 out=10",
		azureHeader + "2023-11-16 18:17:03.9799601,4808,10\r\n":                          "2023-11-16T18:17:03.9799601Z in=4808 out=10",
		azureHeader + "2024-05-10 00:00:00+00:00,4808,10\r\n":                            "2024-05-10T00:00:00Z in=4808 out=10",
		"GeneratedTokens,x,TIMESTAMP,ContextTokens\n10,,2023-11-16 18:17:03,4808\n":      "2023-11-16T18:17:03Z in=4808 out=10",
		"\"TIMESTAMP\",ContextTokens,GeneratedTokens\n\"2023-11-16 18:17:03\",\"1\",0\n": "2023-11-16T18:17:03Z in=1 out=0",

		azureHeader + "2023-11-16 18:17:03,,10\n":             "log:2:1: input_tokens is missing",
		azureHeader + ",4808,10\n":                            "log:2:1: it has no time",
		azureHeader + "2023-11-16 18:17:03,-1,10\n":           "log:2:21: input_tokens: want a whole number",
		azureHeader + "2023-11-16 18:17:03,1,2147483648\n":    "log:2:23: output_tokens: want a whole number",
		azureHeader + "2023-11-16 18:17:03,1,\x00\n":          "log:2:23: output_tokens: want a whole number",
		azureHeader + "2023-11-16 18:17:03,1\n":               "log:2:1: the row has fewer fields",
		azureHeader + "2023-11-16 18:17:03,1,2,3\n":           "log:2:1: the row has more fields",
		azureHeader + "\n2023-11-16 18:17:03,1\"0,2\nx,y,z\n": "log:3:22: a quote is out of place",
		azureHeader + "2023-11-16 18:17:03,1":                 "log:2:22: unexpected end of file: the last row is not whole",
		azureHeader + "\"2023-11-16":                          "log:2:12: unexpected end of file: a quoted field is not closed",
		"TIMESTAMP,ContextTokens,GeneratedTokens,\n0":         "log:2:2: unexpected end of file", // a column without a name
		"TIMESTAMP,ContextTokens\n":                           "log:1:1: the header has no column for output_tokens",
		"TIMESTAMP,TIMESTAMP,ContextTokens,GeneratedTokens\n": "log:1:1: the header has several columns for time",
		"\"TIMESTAMP": "log:1:11: unexpected end of file",
		"":            "log:1:1: the input is empty",
	} {
		all, info, err := read(strings.NewReader(in), Options{Format: "azure-2023", MaxBad: 1})
		got := ""
		switch {
		case err != nil:
			got = err.Error()
		case len(all) == 1:
			at := all[0].Time
			all[0].Time = time.Time{}
			got = at.Format(time.RFC3339Nano) + " " + summary(&all[0])
		case len(info.FirstBad) > 0:
			got = info.FirstBad[0].Error()
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%q\n  %s\n  want %s", in, got, want)
		}
	}
}

// A last row that is at fault and has its line end is bad, not cut off, even
// when the end of the input comes with it.
func TestCSVLastRow(t *testing.T) {
	in := iotest.DataErrReader(strings.NewReader(azureHeader + "2023-11-16 18:17:03,1,2\n2023-11-16 18:17:03,1\n"))
	all, info, err := read(in, Options{MaxBad: 0.5})
	if err != nil || len(all) != 1 || info.Bad != 1 {
		t.Errorf("%d entries, %d bad, %v", len(all), info.Bad, err)
	}
}

// Lines are counted through quoted line ends and bad rows.
func TestCSVLines(t *testing.T) {
	in := "n,text\n1,\"a\nb\"\n\n\"x\"y,2\nbad,z\n3\n"
	all, info := mustRead(t, in, Options{MaxBad: 1, Map: Mapping{"input_tokens": {"n"}, "output": {"text"}}})
	var places []string
	for _, b := range info.FirstBad {
		places = append(places, fmt.Sprintf("%d:%d", b.Line, b.Column))
	}
	if got := strings.Join(places, " "); len(all) != 1 || got != "5:3 6:1 7:1" {
		t.Errorf("%d entries, bad at %s", len(all), got)
	}
}

func TestCSVText(t *testing.T) {
	in := "conversation,who,when (s),prompt\n" +
		"c1,ann,0.5,\"Hello, \"\"you\"\"\nthere\"\n" +
		"c1,ann,2,bad \xff\xfe bytes\n" +
		"c1,ann,2.5,both \xff and é\n" +
		",,3,x\n"
	all, info := mustRead(t, in, Options{Map: Mapping{"session": {"conversation"}, "user": {"who"}, "time": {"when (s)"}, "prompt": {"prompt"}}})
	for i, want := range []string{
		`500ms user=ann session=c1 user:"Hello, \"you\"\nthere" completion`,
		`2s user=ann session=c1 user:"bad ÿþ bytes" completion`, // in Latin-1
		`2.5s user=ann session=c1 user:"both ` + "\uFFFD" + ` and é" completion`,
		`3s user:"x" completion`,
	} {
		if got := summary(&all[i]); got != want {
			t.Errorf("%s\n want %s", got, want)
		}
	}
	if !info.HasText || !info.HasUsers || !info.HasSessions || !info.HasTimes || info.TimeUnit != "s" {
		t.Errorf("%+v", info)
	}
}

// The published trace against totals that were computed independently.
func TestAzurePublished(t *testing.T) {
	text, err := io.ReadAll(published(t, "azure_llm_2023_code.csv"))
	if err != nil {
		t.Fatal(err)
	}
	all, info := mustRead(t, string(text), Options{})
	var input, output int64
	for i := range all {
		input, output = input+int64(*all[i].InputTokens), output+int64(*all[i].OutputTokens)
	}
	n := float64(len(all))
	got := fmt.Sprintf("%d %.2f %.2f %.3f", len(all), float64(input)/n, float64(output)/n, all[len(all)-1].Time.Sub(all[0].Time).Seconds())
	if got != "8819 2047.85 27.88 3435.948" || info.Bad != 0 || info.TimeUnit != "date" || info.Format != "azure-2023" {
		t.Errorf("%s, %+v", got, info)
	}
	if first := all[0].Time.Format(time.RFC3339Nano); first != "2023-11-16T18:17:03.97996Z" {
		t.Errorf("the first arrives at %s", first)
	}
}
