package stage

import (
	"encoding/json"
)

// Figures are those of a profile of some rows, or of groups of them. They merge in any order.
type Figures struct {
	Rows, Failed int64
	Blockless    int64  // requests without blocks, so far as a shard knows
	References   int64  // to blocks of prompts, all of them
	Input        Values // tokens
	Output       Values
	Gaps         Values // between arrivals in one window, in nanoseconds
	Spans        []Span // of windows
	Parts        []Part // of the sample of blocks
}

// Merge adds the figures of o.
func (f *Figures) Merge(o *Figures) {
	f.Rows, f.Failed, f.Blockless, f.References = f.Rows+o.Rows, f.Failed+o.Failed, f.Blockless+o.Blockless,
		f.References+o.References
	f.Input.Merge(&o.Input)
	f.Output.Merge(&o.Output)
	f.Gaps.Merge(&o.Gaps)
	f.Spans, f.Parts = append(f.Spans, o.Spans...), append(f.Parts, o.Parts...)
}

// Encode writes the figures for their way between workers.
func Encode(f *Figures) ([]byte, error) { return json.Marshal(f) }

// Decode reads what [Encode] wrote.
func Decode(b []byte) (*Figures, error) {
	f := new(Figures)
	return f, json.Unmarshal(b, f)
}
