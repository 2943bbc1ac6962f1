package usage

// A Finding is what a reader of the tokens should know of how they came about. [Findings] is
// a set of them.
type Finding uint8

// The findings. The first ones are of the counts alone, and [Counts.Settle] has them; those
// from InputAbovePrompt on hold a count against the answer, and [Claim.Judge] has them.
const (
	CacheAdded      Finding = iota // a relayed count: the cache parts were added to the input
	CacheTaken                     // a relayed count: they were taken as within the input, which nothing shows
	CacheOver                      // more cached tokens than input
	ReasoningAdded                 // the reasoning was added to the output
	ReasoningOver                  // more reasoning than output, of which it is said to be a part
	TotalOff                       // the total is not the sum of its parts
	CacheBeyond                    // more cached tokens than input, though their names say that they are part of it
	ReasoningBeyond                // more reasoning than output, though the total says that it is part of it
	TotalBelow                     // the total is less than its parts, whichever of them it may leave out
	NoCount                        // a negative number, a fraction, or one above 2147483647
	OutputFell                     // the output count fell from one event of a stream to the next
	InputChanged                   // the input count changed from one event of a stream to the next

	InputAbovePrompt // more input tokens than the request has bytes
	OutputAboveAsked // more output tokens than were asked for, which the text does not show
	OutputAboveTime  // more output tokens than any model makes in the time, which the text does not show
	OutputBelowText  // far fewer output tokens than the text has
	OutputOfNone     // output tokens of an answer that generates none
	OutputUnseen     // more output tokens than the text can hold
	findings
)

// A finding is what is to be said of one, and what it shows to be wrong.
type finding struct {
	key     string // in [Tally], and in results
	says    string // behind the number and the name of what has it: "2 answers that count …"
	refutes kindSet
}

const (
	ofInput  kindSet = 1 << Input
	ofCached kindSet = 1 << Cached
	ofOutput kindSet = 1 << Output
)

var findingTable = [findings]finding{
	CacheAdded: {key: "cached_added_to_input",
		says: "whose cached tokens stand beside the input count, and were added to it"},
	CacheTaken: {key: "cached_taken_as_within",
		says: "whose cached tokens were taken as part of the input count, which nothing in them shows"},
	ReasoningAdded: {key: "reasoning_added_to_output",
		says: "whose reasoning tokens stand beside the output count, and were added to it"},
	TotalOff: {key: "total_unexplained",
		says: "whose total is not the sum of their input and output tokens: the two counts were taken, and the " +
			"total was not"},
	OutputUnseen: {key: "output_unseen",
		says: "whose output count cannot be checked, since their text cannot hold so many tokens: " +
			"reasoning was hidden without a count of it, or tokens have no text"},

	CacheOver: {"cached_above_input", "that count more cached tokens than input tokens", ofCached},
	CacheBeyond: {"cached_beyond_input",
		"that count more cached tokens than input tokens, by their names a part of them", ofInput | ofCached},
	ReasoningOver: {"reasoning_above_output", "that count more reasoning tokens than output tokens", ofOutput},
	ReasoningBeyond: {"reasoning_beyond_output",
		"that count more reasoning tokens than output tokens, by the total a part of them", ofOutput},
	TotalBelow: {"total_below_parts", "whose total is less than their input and output tokens together",
		ofInput | ofCached | ofOutput},
	NoCount:      {"no_count", "that have a number which is no count: negative, a fraction, or above 2147483647", 0},
	OutputFell:   {"output_fell", "whose output count fell while they came", ofOutput},
	InputChanged: {"input_changed", "whose input count changed while they came", ofInput | ofCached},

	InputAbovePrompt: {"input_above_prompt", "that count far more input tokens than their requests can hold",
		ofInput | ofCached},
	OutputAboveAsked: {"output_above_asked",
		"that count more output tokens than were asked for at most, and have no text for them", ofOutput},
	OutputAboveTime: {"output_above_time",
		"that count more output tokens than any model makes in their time, and have no text for them", ofOutput},
	OutputBelowText: {"output_below_text", "that count far fewer output tokens than their text has", ofOutput},
	OutputOfNone:    {"output_of_none", "that count output tokens, and generate none", ofOutput},
}

// String says what was found, of records: to be shown with their number.
func (f Finding) String() string {
	says := "records " + f.Says()
	switch f {
	case CacheAdded:
		says += " (--cached-in-input yes says that they are part of it)"
	case CacheTaken:
		says += " (--cached-in-input no says that they stand beside it)"
	case CacheOver:
		says += ": all of the input was taken as cached"
	case ReasoningOver:
		says += ": all of the output was taken as reasoning"
	case TotalBelow:
		says += ": the two counts were taken, and the total was not"
	}
	return says
}

// Says says what was found, behind the number and the name of what has it: "2 answers that count …".
func (f Finding) Says() string { return findingTable[f].says }

// Key is the short name of the finding, such as output_above_asked.
func (f Finding) Key() string { return findingTable[f].key }

// EveryFinding has each finding.
const EveryFinding Findings = 1<<findings - 1

// FindingOf is the finding with a key. It is not ok for a word that is none.
func FindingOf(key string) (one Finding, ok bool) {
	for one := range findings {
		if one.Key() == key {
			return one, true
		}
	}
	return 0, false
}

// Contradicts reports whether the finding shows beyond doubt that some count is wrong.
func (f Finding) Contradicts() bool { return f == NoCount || findingTable[f].refutes != 0 }

// Refutes reports whether the finding shows that the count of a kind is wrong.
func (f Finding) Refutes(k Kind) bool { return findingTable[f].refutes&(1<<k) != 0 }

// Findings are a set.
type Findings uint32

// Has reports whether a finding is in the set.
func (f Findings) Has(one Finding) bool { return f&(1<<one) != 0 }

// With is the set with a finding.
func (f Findings) With(one Finding) Findings { return f | 1<<one }

// Without is the set without a finding.
func (f Findings) Without(one Finding) Findings { return f &^ (1 << one) }

// All lists the findings of the set.
func (f Findings) All() (all []Finding) {
	for one := range findings {
		if f.Has(one) {
			all = append(all, one)
		}
	}
	return all
}

// Refutes reports whether some finding of the set shows that the count of a kind is wrong.
func (f Findings) Refutes(k Kind) bool {
	for one := range findings {
		if f.Has(one) && one.Refutes(k) {
			return true
		}
	}
	return false
}

// Contradictions are those of the set that show beyond doubt that some count is wrong.
func (f Findings) Contradictions() Findings {
	for one := range findings {
		if f.Has(one) && !one.Contradicts() {
			f = f.Without(one)
		}
	}
	return f
}
