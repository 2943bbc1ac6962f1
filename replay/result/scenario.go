package result

// A Scenario is the published benchmark whose rules a run was held to, and the stamp: whether
// it may be submitted as a result of that benchmark.
type Scenario struct {
	Name      string `json:"name"`
	Version   string `json:"version"`
	Published string `json:"published,omitempty"` // where the rules are from
	// Rules is the SHA-256 of the YAML that the rules were read from; BuiltIn says that it is
	// one of ours.
	Rules   string `json:"rules_sha256"`
	BuiltIn bool   `json:"built_in"`
	// Filled are the settings that the rules filled in, such as idle-cap=10s.
	Filled []string `json:"filled,omitempty"`

	// Valid is null in the journal of a run that did not finish.
	Valid  *bool        `json:"submission_valid"`
	Broken []BrokenRule `json:"broken_rules,omitempty"`
	// that Reprise cannot hold a run to: with one, no run is valid
	Unchecked []string `json:"unchecked_rules,omitempty"`

	// Source is the digest of the file that the workload is of as a whole, empty where the
	// workload does not tell.
	Source string `json:"source_sha256,omitempty"`

	// Answers is how many requests ended, and TooLong how many of them the server refused
	// because they do not fit its context.
	Answers int64 `json:"answers"`
	TooLong int64 `json:"too_long"`
}

// A BrokenRule is a rule of a scenario that a run did not keep.
type BrokenRule struct {
	Rule  string `json:"rule"` // a setting of the run, or what was found at its end
	Given string `json:"given"`
	Want  string `json:"want"`
}

// String says which rule was broken, and how.
func (b BrokenRule) String() string { return b.Rule + ": " + b.Given + ", want " + b.Want }
