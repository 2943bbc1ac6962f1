package result

// A Beyond is a bound of the records that an engine was fitted to, which a run of it passed.
type Beyond struct {
	Bound   string `json:"bound"` // as the engine's file has it, such as max_prompt_tokens
	Covers  int    `json:"covers"`
	Reached int    `json:"reached"`
}

// JoinBeyond are the bounds that several runs of one engine passed, with the most that was
// reached.
func JoinBeyond(all, more []Beyond) []Beyond {
	all = append([]Beyond(nil), all...)
	for _, b := range more {
		known := false
		for i := range all {
			if all[i].Bound == b.Bound {
				all[i].Reached, known = max(all[i].Reached, b.Reached), true
			}
		}
		if !known {
			all = append(all, b)
		}
	}
	return all
}
