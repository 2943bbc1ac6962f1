package stage

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/profile"
)

// A Summary is a profile, as far as it can be had without the trace.
type Summary struct {
	Schema       string         `json:"schema"` // cluster-profile/1
	Rows         int64          `json:"rows"`
	Requests     int64          `json:"requests"`
	Failed       int64          `json:"failed"`
	DurationS    float64        `json:"duration_s"`
	Input        *profile.Stats `json:"input_tokens"`
	Output       *profile.Stats `json:"output_tokens"`
	InputTotal   int64          `json:"input_tokens_total"`
	OutputTotal  *int64         `json:"output_tokens_total"` // null where no request tells
	InterArrival *profile.Stats `json:"inter_arrival_s"`
	Blockless    int64          `json:"requests_without_blocks"`
	References   int64          `json:"references_blocks"`
	UniqueBlocks int64          `json:"unique_blocks"` // an estimate where not all blocks are in the sample
	SampleOneIn  int            `json:"sample_one_in"`
	LRUCurve     []Point        `json:"lru_curve"`
}

// Summary is the profile, where one block in oneIn is in the sample.
func (f *Figures) Summary(oneIn int) *Summary {
	gaps, whole := f.closed()
	s := &Summary{Schema: "cluster-profile/1", Rows: f.Rows, Requests: f.Rows - f.Failed, Failed: f.Failed,
		DurationS: float64(whole.Last-whole.First) / 1e9,
		Input:     f.Input.Stats(1), Output: f.Output.Stats(1), InputTotal: f.Input.sum,
		InterArrival: gaps.Stats(float64(time.Second)),
		Blockless:    f.Blockless, References: f.References, SampleOneIn: oneIn, LRUCurve: Curve(f.Parts,
			oneIn, f.References)}
	if f.Output.count > 0 {
		s.OutputTotal = &f.Output.sum
	}
	for _, p := range f.Parts {
		s.UniqueBlocks += p.Blocks * int64(oneIn)
	}
	return s
}

// WriteText prints the profile in at most 25 lines.
func (s *Summary) WriteText(w io.Writer) error {
	output := "unknown"
	if s.OutputTotal != nil {
		output = doc.Count(*s.OutputTotal)
	}
	if _, err := fmt.Fprintf(w, "%s in %s s, %s failed; %s input and %s output tokens\n",
		doc.Many(s.Requests, "request"), doc.Number(s.DurationS), doc.Count(s.Failed), doc.Count(s.InputTotal),
		output); err != nil {
		return err
	}
	fmt.Fprintf(w, "%-16s %10s %10s %10s %10s %10s\n", "", "mean", "p50", "p90", "p99", "max")
	for _, row := range []struct {
		name string
		of   *profile.Stats
	}{{"input tokens", s.Input}, {"output tokens", s.Output}, {"gap, s", s.InterArrival}} {
		if x := row.of; x != nil {
			fmt.Fprintf(w, "%-16s %10s %10s %10s %10s %10s\n", row.name, doc.Number(x.Mean), doc.Number(x.P50),
				doc.Number(x.P90), doc.Number(x.P99), doc.Number(x.Max))
		}
	}
	if len(s.LRUCurve) == 0 {
		_, err := fmt.Fprintln(w, "no prefix blocks in the shards: reuse is not known here")
		return err
	}
	about := ""
	if s.SampleOneIn > 1 {
		about = fmt.Sprintf(", by one block in %d", s.SampleOneIn)
	}
	fmt.Fprintf(w, "%s references to %s distinct blocks%s; hit ratio by block of an LRU cache:\n",
		doc.Count(s.References), doc.Count(s.UniqueBlocks), about)
	shown := s.LRUCurve
	if len(shown) > shownPoints {
		shown = shown[len(shown)-shownPoints:]
	}
	for _, p := range shown {
		if p.CapacityBlocks == nil {
			fmt.Fprintf(w, "  %14s         %9s\n", "without limit", doc.Percent(p.HitRatio))
			continue
		}
		fmt.Fprintf(w, "  %14s blocks  %9s ± %s\n", doc.Count(*p.CapacityBlocks), doc.Percent(p.HitRatio),
			doc.Percent(p.Error))
	}
	if s.Blockless > 0 {
		fmt.Fprintf(w, "%s without blocks are not in the curve\n", doc.Many(s.Blockless, "request"))
	}
	return nil
}

// shownPoints of the curve leave the text within 25 lines.
const shownPoints = 14

// Profile is where the profile goes: beside the trace.
func (j *Job) Profile() string { return j.beside(".profile.json") }

// WriteProfile writes the profile, as JSON, for its owner alone.
func (j *Job) WriteProfile(f *Figures) error {
	text, err := json.MarshalIndent(f.Summary(j.OneIn), "", "  ")
	if err != nil {
		return err
	}
	return trace.WriteFile(j.Profile(), 0o600, func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
}
