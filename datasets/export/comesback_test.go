package export

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"reprise/datasets"
	"reprise/trace"
)

// kept is what a format keeps of a trace, as its page says: what is not here is lost.
type kept struct {
	unit     time.Duration // of arrivals; 0 for none
	inputs   bool          // lengths of prompts, if not by their text
	outputs  bool          // lengths of outputs; else they are not known, and the limits asked for are
	blocks   bool          // what prompts share
	sessions bool          // and the turns in them
}

var keptBy = map[string]kept{
	"mooncake":         {time.Millisecond, true, true, true, false},
	"sglang":           {time.Millisecond, true, true, true, false},
	"aiperf":           {time.Millisecond, true, true, true, true},
	"bailian":          {1, true, true, true, true},
	"vllm-timed-trace": {1, true, true, true, false},
	"guidellm":         {1, true, true, true, false},
	"inference-perf":   {100, true, true, false, false},
	"blis":             {time.Microsecond, true, true, false, true},
	"vllm-custom":      {0, false, true, false, false},
	"openai-batch":     {0, false, false, false, false},
}

// Every export is read without being told anything of it, and has the rows, lengths, times,
// sessions and blocks of the trace, but for what the page of its format says is lost.
func TestEveryExportComesBack(t *testing.T) {
	for _, out := range Formats() {
		keeps, ok := keptBy[out.Name]
		if !ok {
			t.Errorf("%s: say in keptBy what it keeps", out.Name)
		}
		for seed := range uint64(12) {
			size := []int{512, 16, 64}[seed%3]
			if seed > 8 && !out.NeedsBlocks {
				size, keeps.blocks = 0, false
			}
			rng := rand.New(rand.NewPCG(seed, 21))
			rows := comparable(randomRows(rng, 80, max(size, 16)))
			for i := range rows {
				if seed%2 == 1 && i%3 == 1 {
					rows[i].OutputTokens = nil
				}
			}
			file, header, _ := write(t, out.Name, Options{BlockSize: size}, rows)
			files := []datasets.File{textFile("trace", file)}
			if header != "" {
				files = []datasets.File{textFile("trace.csv", file), textFile("trace.yaml", header)}
			}
			src, err := datasets.OpenFiles(files, datasets.Options{AllowLongSpan: true})
			if err != nil {
				t.Errorf("%s of blocks of %d: %v", out.Name, size, err)
				continue
			}
			all, info := drain(t, src)
			if info.Bad > 0 || len(all) != len(rows) {
				t.Errorf("%s of blocks of %d: %d of %d rows, %v", out.Name, size, len(all), len(rows), info.FirstBad)
				continue
			}
			if why := differs(keeps, rows, all, size, info.BlockSize); why != "" {
				t.Errorf("%s of blocks of %d, read as %s: %s", out.Name, size, info.Format, why)
			}
		}
	}
}

func textFile(name, text string) datasets.File {
	return datasets.File{Name: name, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
}

// comparable makes rows say nothing that formats have in different ways: the parent of a row is the
// turn before it, which it follows when that has been answered, and a turn is its place.
func comparable(rows []trace.Request) []trace.Request {
	turns, last := map[int64]int32{}, map[int64]int64{}
	for i := range rows {
		r := &rows[i]
		r.Turn, r.Parents, r.ThinkNS, r.Status = nil, nil, nil, trace.StatusOK
		r.OutputTokens = trace.Ptr(max(r.OutputOr(1), 1))
		if r.Session == nil {
			continue
		}
		s := *r.Session
		if r.Turn = trace.Ptr(turns[s]); turns[s] > 0 {
			r.Parents = []int64{last[s]}
		}
		turns[s]++
		last[s] = int64(i)
	}
	return rows
}

// differs says how what was read differs from what a format keeps of the rows.
func differs(keeps kept, rows []trace.Request, all []trace.Entry, size, readSize int) string {
	sessions := map[string]int64{}
	for i := range all {
		e, r := &all[i], &rows[i]
		says := func(format string, args ...any) string {
			return fmt.Sprintf("row %d: %s (%s)", i, fmt.Sprintf(format, args...), facts(e))
		}
		switch at := time.Duration(r.ArrivalNS); {
		case keeps.unit == 0 != e.Time.IsZero():
			return says("whether there is a time")
		case keeps.unit > 0 && e.Time.Sub(datasets.Epoch) != at.Round(keeps.unit):
			return says("it arrives at %v", at)
		case keeps.inputs && (e.InputTokens == nil || *e.InputTokens != r.InputTokens):
			return says("its input is of %d tokens", r.InputTokens)
		case keeps.outputs && !same(e.OutputTokens, r.OutputTokens):
			return says("its output is of %d tokens", r.OutputOr(-1))
		case !keeps.outputs && (e.OutputTokens != nil || r.Kind != "embedding" && !same(e.MaxTokens, r.OutputTokens)):
			return says("its output is not known, and limited to %d tokens", r.OutputOr(-1))
		case keeps.sessions && r.Session != nil:
			name := e.Session.Reveal()
			if known, ok := sessions[name]; ok && known != *r.Session || e.Turn == nil || *e.Turn != *r.Turn {
				return says("it is turn %d of session %d", *r.Turn, *r.Session)
			}
			sessions[name] = *r.Session
		}
		if !keeps.blocks {
			continue
		}
		for k := range i {
			if want, got := shared(r.Blocks, rows[k].Blocks, size, r.InputTokens), shared(e.SourceBlocks, all[k].SourceBlocks, readSize, r.InputTokens); want != got {
				return says("with row %d it shares %d tokens and not %d", k, want, got)
			}
		}
	}
	return ""
}

// same reports whether two lengths are equal, or both not known.
func same(a, b *int32) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }

// shared is how many tokens two prompts have in common, by their blocks.
func shared(a, b []uint64, size int, length int32) (tokens int) {
	for i := 0; i < min(len(a), len(b)) && a[i] == b[i]; i++ {
		tokens = min((i+1)*size, int(length))
	}
	return tokens
}
