package usage

// A Tally counts answers by what was found in their usage.
type Tally struct {
	CacheAdded     int64 `json:"cached_added_to_input,omitempty"`
	CacheTaken     int64 `json:"cached_taken_as_within,omitempty"`
	CacheOver      int64 `json:"cached_above_input,omitempty"`
	ReasoningAdded int64 `json:"reasoning_added_to_output,omitempty"`
	ReasoningOver  int64 `json:"reasoning_above_output,omitempty"`
	TotalOff       int64 `json:"total_unexplained,omitempty"`

	CacheBeyond     int64 `json:"cached_beyond_input,omitempty"`
	ReasoningBeyond int64 `json:"reasoning_beyond_output,omitempty"`
	TotalBelow      int64 `json:"total_below_parts,omitempty"`
	NoCount         int64 `json:"no_count,omitempty"`
	OutputFell      int64 `json:"output_fell,omitempty"`
	InputChanged    int64 `json:"input_changed,omitempty"`

	InputAbovePrompt int64 `json:"input_above_prompt,omitempty"`
	OutputAboveAsked int64 `json:"output_above_asked,omitempty"`
	OutputAboveTime  int64 `json:"output_above_time,omitempty"`
	OutputBelowText  int64 `json:"output_below_text,omitempty"`
	OutputOfNone     int64 `json:"output_of_none,omitempty"`
	OutputUnseen     int64 `json:"output_unseen,omitempty"`
}

func (t *Tally) counts() [findings]*int64 {
	return [findings]*int64{CacheAdded: &t.CacheAdded, CacheTaken: &t.CacheTaken, CacheOver: &t.CacheOver,
		ReasoningAdded: &t.ReasoningAdded, ReasoningOver: &t.ReasoningOver, TotalOff: &t.TotalOff,
		CacheBeyond: &t.CacheBeyond, ReasoningBeyond: &t.ReasoningBeyond, TotalBelow: &t.TotalBelow,
		NoCount: &t.NoCount, OutputFell: &t.OutputFell, InputChanged: &t.InputChanged,
		InputAbovePrompt: &t.InputAbovePrompt, OutputAboveAsked: &t.OutputAboveAsked,
		OutputAboveTime: &t.OutputAboveTime,
		OutputBelowText: &t.OutputBelowText, OutputOfNone: &t.OutputOfNone, OutputUnseen: &t.OutputUnseen}
}

// Add counts what was found in one answer.
func (t *Tally) Add(found Findings) {
	for _, one := range found.All() {
		*t.counts()[one]++
	}
}

// Join adds the answers of another tally.
func (t *Tally) Join(other Tally) {
	sums := t.counts()
	for one, n := range other.counts() {
		*sums[one] += *n
	}
}

// Each calls f with every finding that some answer has, and with their number.
func (t *Tally) Each(f func(one Finding, n int64)) {
	for one, n := range t.counts() {
		if *n > 0 {
			f(Finding(one), *n)
		}
	}
}
