package datasets

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"reprise/datasets/internal/fault"
	"reprise/trace"
	"reprise/trace/longtest"
)

// plant is put into broken inputs; no message may hold it.
const plant = "PLANTED-7f3a"

// wholes are whole inputs by format, where the example of the format is not
// one by itself.
var wholes = map[string]string{
	"azure-2023": "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n",
	"csv":        "t,prompt_tokens,completion_tokens\n2026-01-02T03:04:05Z,120,40\n",
}

// corpusOptions let a format be read without a word about its fields.
func corpusOptions(f Format) Options {
	o := Options{MaxBad: 1}
	switch f.Name {
	case "csv", "jsonl":
		o.Format = f.Name
		o.Map = Mapping{"time": {"t"}, "input_tokens": {"prompt_tokens", "usage.prompt_tokens"}, "output_tokens": {"completion_tokens", "usage.completion_tokens"}}
	}
	return o
}

// whole returns an input of the format of some records.
func whole(f Format) string {
	text, ok := wholes[f.Name]
	if !ok {
		text = f.Example
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if text[0] == '{' {
		text = strings.Repeat(text, 3)
	}
	return text
}

// told reads an input to its end and returns all that it makes the reader say.
func told(in io.Reader, o Options) (entries int, said string, err error) {
	s, err := Open(in, o)
	if err != nil {
		return 0, err.Error(), err
	}
	batch := make([]trace.Entry, 16)
	for err == nil {
		var n int
		n, err = s.Read(batch)
		entries += n
	}
	info := s.Info()
	said = fmt.Sprint(err, info.Notes, info.Format, info.TimeUnit)
	for _, b := range info.FirstBad {
		said += b.Error()
	}
	if err == io.EOF {
		err = nil
	}
	return entries, said, err
}

// streams are the formats that are read from one stream of text.
func streams(t *testing.T) []Format {
	t.Helper()
	var out []Format
	for _, f := range Formats() {
		if f.open != nil && f.Example != "" && !strings.HasPrefix(f.Example, "PAR1") {
			out = append(out, f)
		}
	}
	if len(out) < 6 {
		t.Fatalf("%d formats only", len(out))
	}
	return out
}

var (
	numberToken = regexp.MustCompile(`-?\b\d+(\.\d+)?\b`)
	stringToken = regexp.MustCompile(`"[^"]*"`)
)

// breakages makes many broken inputs of a whole one.
func breakages(text string, r *rand.Rand) map[string]string {
	out := map[string]string{
		"a byte-order mark": "\xef\xbb\xbf" + text, "CRLF": strings.ReplaceAll(text, "\n", "\r\n"),
		"blank lines": "\n\n" + strings.ReplaceAll(text, "\n", "\n\n"), "no last newline": strings.TrimSuffix(text, "\n"),
		"nothing": "", "only newlines": "\n\n\n", "only NUL": "\x00\x00", "garbage behind": text + plant + "\n",
		"garbage in front": plant + "\n" + text,
	}
	places, tokens := 4, 15 // of each kind
	if longtest.On() {
		places, tokens = 40, 60
	}
	for i := range places {
		out[fmt.Sprint("cut ", i)] = text[:r.IntN(len(text))]
		at := r.IntN(len(text))
		for name, b := range map[string]string{"NUL": "\x00", "bad UTF-8": "\xff\xfe", "a quote": `"`, "a brace": "}", "a comma": ",", "the plant": plant} {
			out[fmt.Sprint(name, " ", i)] = text[:at] + b + text[at:]
		}
	}
	replace := func(kind string, token *regexp.Regexp, values []string) {
		for i, at := range token.FindAllStringIndex(text, tokens) {
			v := values[i%len(values)]
			for _, v := range []string{v, values[r.IntN(len(values))]} {
				out[fmt.Sprint(kind, " ", i, " ", v[:min(len(v), 12)])] = text[:at[0]] + v + text[at[1]:]
			}
		}
	}
	replace("number", numberToken, []string{"NaN", "-1", "-9223372036854775808", "99999999999999999999", "1e400", `"` + plant + `"`, "null", "[]", "{}", "0.5", "true", "1e18"})
	replace("string", stringToken, []string{`"` + plant + `"`, `""`, "null", "7", `["` + plant + `"]`, `{"` + plant + `":1}`, `"` + strings.Repeat("x", 100_000) + `"`})
	if i := strings.Index(text, `{"`); i >= 0 { // the first key twice
		if j := strings.IndexAny(text[i:], ",}"); j > 0 {
			out["a key twice"] = text[:i+1] + text[i+1:i+j] + "," + text[i+1:]
		}
	}
	return out
}

// Whatever is wrong with an input, a reader ends with an error or counts what
// it skipped, and repeats nothing of it.
func TestBrokenInputs(t *testing.T) {
	longtest.Skip(t)
	for _, f := range streams(t) {
		r := rand.New(rand.NewPCG(1, 2))
		for name, text := range breakages(whole(f), r) {
			for _, format := range []string{"", f.Name} {
				o := corpusOptions(f)
				if format != "" {
					o.Format = format
				}
				_, said, err := told(strings.NewReader(text), o)
				if strings.Contains(said, plant) {
					t.Fatalf("%s, %s: the input is quoted: %s", f.Name, name, said)
				}
				var place *trace.SourceError
				var many *tooManyBad
				if err != nil && !errors.As(err, &place) && !errors.As(err, &many) && !errors.Is(err, fault.ErrUsage) {
					t.Errorf("%s, %s: an error without a place: %v", f.Name, name, err)
				}
			}
		}
	}
}

// A line of 100 MB is refused without being held, by each reader. The formats that are files have one reader.
func TestHugeLine(t *testing.T) {
	longtest.Skip(t)
	declared := map[string]bool{}
	for _, d := range declaredFormats() {
		declared[d.name] = d.name != "api-log" && d.name != "azure-2023" // of JSON and of CSV
	}

	for _, f := range streams(t) {
		if declared[f.Name] {
			continue
		}
		text := whole(f)
		at := strings.LastIndexByte(strings.TrimSpace(text), '"')
		if at < 0 {
			at = len(strings.TrimSpace(text)) - 1
		}
		in := io.MultiReader(strings.NewReader(text[:at]), io.LimitReader(letters{}, 100<<20), strings.NewReader(text[at:]))
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		o := corpusOptions(f)
		o.Format = f.Name
		_, said, err := told(in, o)
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%s: a line of 100 MB was read: %.200s", f.Name, said)
		}
		if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 400<<20 {
			t.Errorf("%s: the heap grew by %d MB", f.Name, grown>>20)
		}
	}
}

// letters is an endless run of one letter.
type letters struct{}

func (letters) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}
