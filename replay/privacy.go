package replay

// A Privacy is what the privacy card of a workload says, in short. The card itself
// is in the workload.
type Privacy struct {
	Card  string   `json:"card"`            // its digest, hex SHA-256
	Unit  string   `json:"unit_of_privacy"` // whom it protects, such as user or request
	Time  string   `json:"time,omitempty"`  // how times were changed
	Risks []string `json:"residual_risks,omitempty"`
}
