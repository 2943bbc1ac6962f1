package report

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/textpage"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// smallRun is a run of 1,200 requests made by arithmetic alone, with something
// of everything in it.
func smallRun() (result.Run, []result.Result, Options) {
	run := result.Run{
		Schema:    result.Schema,
		Version:   "1.0.0",
		Started:   "2025-06-01T10:00:00Z",
		Load:      result.Load{API: "chat", Prompts: "text", Model: "meta-llama/Llama-3.2-3B", Tokenizer: "o200k_base", Speed: 2, Timing: "open-loop", Connections: "pooled"},
		Source:    result.Source{Workload: "sha256:5c3f", Tier: "internal", Seed: "42", BlockSize: 512, ServerBlock: 16, Overhead: 4},
		Sending:   result.Sending{Requests: 1200, Excluded: 3, ShortTails: 1, MaxInFlight: 31, InFlightLimit: 64},
		Client:    result.Client{ClientCPU: 0.4, Cores: 2, GCPauseMaxNS: 400_000},
		PlannedNS: 1199 * 50 * msNS,
	}
	var results []result.Result
	for i := range int64(1200) {
		first := 30 + i*i%97
		step := 5 + i%7
		r := answer(i, i*50, i%13/6, first, first+step, first+3*step, first+3*step+i%3)
		r.Category = trace.Categories()[i%5]
		prompt := int32(40 + i*i*i%6000)
		r.WantInput, r.Input = prompt, trace.Ptr(prompt+int32(i%200/199))
		r.Known, r.Cached = trace.Ptr(prompt*int32(i%4)/4), trace.Ptr(prompt*int32(i%4)/5)
		if i%40 == 7 {
			r.Output, r.OutputFrom = trace.Ptr(int32(6)), "tokenizer"
		}
		if i%150 == 149 {
			r = failure(i, i*50, []string{"timeout", "reset"}[i/150%2])
		}
		results = append(results, r)
	}
	slo := SLO{TTFT: trace.Ptr(100 * time.Millisecond), TPOT: trace.Ptr(10 * time.Millisecond)}
	return run, results, Options{SLO: slo}
}

// brokenRun is one whose numbers say little.
func brokenRun() (result.Run, []result.Result, Options) {
	run := result.Run{
		Load:       result.Load{Model: "m\x1b[31m", Speed: 1, Timing: "open-loop"},
		EndedEarly: "interrupted",
		Sending:    result.Sending{NotSent: 40, HeldBack: 2, InFlightLimit: 1, MaxInFlight: 1, Requests: 4},
		Source:     result.Source{Tier: "public"},
	}
	return run, []result.Result{
		answer(0, 0, 0, 40, 50), answer(1, 10, 250, 60), failure(2, 20, "connect"), failure(3, 30, "con\x1b[31mnect"),
	}, Options{}
}

// writeJSON writes JSON as the command does.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; run with -update and read the difference. Got:\n%s", name, got)
	}
}

// The description of the run is package replay's, and may grow.
var runObject = regexp.MustCompile(`(?s)  "run": \{.*?\n  \},\n`)

// sessionRun is a run of trees, of which some were cut and some failed, in milliseconds.
func sessionRun() (result.Run, []result.Result, Options) {
	run := result.Run{
		Load:    result.Load{Model: "m", Speed: 1, Timing: result.Causal},
		Source:  result.Source{ServerBlock: 16},
		Sending: result.Sending{Requests: 800, Beyond: 9, Cut: &result.CutSessions{Sessions: []result.SessionKey{{Session: 3}, {Session: 5, Play: 1}}}},
	}
	results := manySessions(rand.New(rand.NewPCG(9, 87)), 160)
	for i := range results {
		r := &results[i]
		r.DueNS *= msNS
		for _, at := range []*int64{r.SentNS, r.FirstTokenNS, r.DoneNS, r.ThinkNS, r.ToolNS, r.ArrivalNS, r.RecordedE2ENS} {
			if at != nil {
				*at *= msNS
			}
		}
	}
	return run, results, Options{GPUs: 2}
}

func TestGolden(t *testing.T) {
	for name, make := range map[string]func() (result.Run, []result.Result, Options){"small": smallRun, "broken": brokenRun, "sessions": sessionRun} {
		run, results, opts := make()
		s := summarise(t, run, opts, results...)
		var text, data bytes.Buffer
		if err := Page(s).WriteText(&text, textpage.Options{Details: true}); err != nil {
			t.Fatal(err)
		}
		if err := writeJSON(&data, s); err != nil {
			t.Fatal(err)
		}
		golden(t, name+".txt", text.Bytes())
		golden(t, name+".json", runObject.ReplaceAll(data.Bytes(), nil))

		var back Summary
		if err := json.Unmarshal(data.Bytes(), &back); err != nil {
			t.Fatal(err)
		}
		s.Series, s.shown = Series{}, nil
		if !reflect.DeepEqual(back, s) {
			t.Errorf("%s: the JSON does not read back as the summary", name)
		}
		holdWidth(t, text.String())

		for _, width := range []int{60, 80, 100} {
			var answer bytes.Buffer
			if err := Page(s).WriteText(&answer, textpage.Options{Width: width, Rest: "All tables: --details."}); err != nil {
				t.Fatal(err)
			}
			holdLines(t, name, s, answer.String(), width, textpage.AnswerLines)
			if width == 80 {
				golden(t, name+".answer.txt", answer.Bytes())
			}
		}
	}
}

// Reasons and warnings are whole when much is to be said at once, and what else there is keeps to
// its lines.
func TestCrowdedAnswer(t *testing.T) {
	run, results, opts := smallRun()
	s := summarise(t, run, opts, results...)
	long := strings.Repeat("a long sentence about what was measured ", 12)
	for n := range 7 {
		s.Verdict = Verdict{}
		for i := range n {
			s.Verdict.Reasons = append(s.Verdict.Reasons, Reason{Text: fmt.Sprintf("reason %d %send", i, long)})
		}
		s.Diagnoses = []Diagnosis{{Code: leadTail, Text: long}, {Code: leadQueueing, Text: long}, {Code: leadMemory, Text: long}}
		s.Warnings = []Warning{{Code: WarnPreset, Text: "first " + long + "end"}, {Code: "other", Text: "second " + long + "end"}, {Code: "another", Text: "third " + long + "end"}}
		for _, width := range []int{60, 80, 100} {
			for _, lines := range []int{textpage.AnswerLines, 17} { // the second is the demo's, below its stages
				var b bytes.Buffer
				if err := Page(s).WriteText(&b, textpage.Options{Width: width, Lines: lines, Rest: "All tables: --details."}); err != nil {
					t.Fatal(err)
				}

				holdLines(t, fmt.Sprint(n, " reasons"), s, b.String(), width, lines)
				for _, fact := range []string{"\nThroughput ", "\nErrors ", "\nOutput "} {
					fits := width >= 80 || fact != "\nOutput " // which takes three lines of 60 columns
					if fits && !strings.Contains(b.String(), fact) {
						t.Errorf("%d reasons at %d columns: no%s in\n%s", n, width, fact, b.String())
					}
				}
			}
		}
	}
}

// holdLines holds an answer to so many lines, beside its reasons and warnings, which are whole.
func holdLines(t *testing.T, name string, s Summary, answer string, width, most int) {
	t.Helper()
	whole := []string{s.Verdict.Loosened.String()}
	for _, r := range s.Verdict.Reasons {
		whole = append(whole, r.Text)
	}
	for _, w := range s.Warnings {
		if w.Code != warnFewSamples {
			whole = append(whole, w.Text)
		}
	}
	said := strings.Join(strings.Fields(answer), " ")
	for _, text := range whole {
		if !strings.Contains(said, strings.Join(strings.Fields(textpage.Plain(text)), " ")) {
			t.Errorf("%s: not whole at %d columns: %s\n%s", name, width, text, answer)
		}
		most += len(text)/(width-10) + 2
	}
	if n := strings.Count(answer, "\n"); n > most || strings.Contains(answer, "…") {
		t.Errorf("%s: an answer of %d lines at %d columns:\n%s", name, n, width, answer)
	}
}

// holdWidth holds every line within 100 columns and free of what a terminal obeys.
func holdWidth(t *testing.T, text string) {
	t.Helper()
	for _, line := range strings.Split(text, "\n") {
		if n := utf8.RuneCountInString(line); n > textpage.MaxWidth {
			t.Errorf("a line of %d columns: %s", n, line)
		}
		if strings.ContainsAny(line, "\x1b\r\t") {
			t.Errorf("control characters in %q", line)
		}
	}
}

// Tables stay narrow with figures as large as they come.
func TestTextWidth(t *testing.T) {
	var results []result.Result
	for i := range int64(1000) {
		r := answer(i, i, 900_000_000-i*999, 8_000_000, 17_654_321)
		r.Category = []string{trace.Continuation, strings.Repeat("long ", 20)}[i%2]
		r.Input, r.Cached, r.Known = trace.Ptr(int32(2e9-i)), trace.Ptr(int32(2e9-i)), trace.Ptr(int32(2e9))
		results = append(results, r)
	}
	results[0] = failure(0, 0, strings.Repeat("x", 200))
	run := result.Run{Load: result.Load{Speed: 123456}, Sending: result.Sending{MaxInFlight: 1e9, InFlightLimit: 1e9, HeldBack: 1e12, Requests: 1e15, NotSent: 1e15}, EndedEarly: strings.Repeat("word ", 100), Source: result.Source{ServerBlock: 1 << 20}}
	s := summarise(t, run, Options{SLO: SLO{TTFT: trace.Ptr(123456789 * time.Microsecond), E2E: trace.Ptr(time.Hour)}}, results...)
	s.Latency.ITLChunk.Count = 1e15
	var b bytes.Buffer
	if err := Page(s).WriteText(&b, textpage.Options{Details: true}); err != nil {
		t.Fatal(err)
	}
	holdWidth(t, b.String())
}

// Every name in the JSON is snake case, and every number with a dimension
// names its unit.
func TestJSONNames(t *testing.T) {
	run, results, opts := smallRun()
	var data bytes.Buffer
	if err := writeJSON(&data, summarise(t, run, opts, results...)); err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(data.Bytes(), &v); err != nil {
		t.Fatal(err)
	}
	bare := map[string]bool{}
	walk(v, "", func(name string, v any) {
		if name != strings.ToLower(name) || strings.ContainsAny(name, "- .") {
			t.Errorf("%q is not snake case", name)
		}
		_, isNumber := v.(float64)
		unit := false
		for _, suffix := range []string{"_ms", "_s", "_ns", "_tokens", "_rows", "_ratio", "_share", "_cores", "_size", "_requests"} {
			unit = unit || strings.HasSuffix(name, suffix)
		}
		if isNumber && !unit {
			bare[name] = true
		}
	})
	// Counts, shares and what is named by the object around it.
	for _, name := range strings.Fields(`rows succeeded failed cancelled not_sent count share requests mean max limit held_back
		ttft_count tpot_count e2e_count difference rounding_loss tokens_per_event max_in_flight in_flight_limit excluded short_tails speed cores
		usage tokenizer none unprepared measured skipped read_late turns sample beyond row warm_up cool_down
		allowed unconnected refused gpus output_tokens_per_s_per_gpu tokens_per_s_per_user`) {
		delete(bare, name)
	}
	if len(bare) > 0 {
		t.Errorf("numbers without a unit: %v", bare)
	}
}

func walk(v any, name string, f func(string, any)) {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			f(k, x)
			walk(x, k, f)
		}
	case []any:
		for _, x := range v {
			walk(x, name, f)
		}
	}
}
