package bench

// A PlannedRun is a run of a suite before it is made.
type PlannedRun struct {
	Model      string `json:"model"`
	Row        string `json:"row"`
	Repeat     int    `json:"repeat"`
	Workload   string `json:"workload"`
	Load       string `json:"load"`
	Hypothesis string `json:"hypothesis,omitempty"`
	Dir        string `json:"dir"`
	Complete   bool   `json:"complete"` // and would not be made again
}

// Plan lists the runs in their order. Nothing is made.
func (r *SuiteRun) Plan() []PlannedRun {
	var out []PlannedRun
	for _, c := range r.Columns {
		for i := range r.Suite.Rows {
			row := &r.Suite.Rows[i]
			for repeat := range row.Repeats {
				p := PlannedRun{Model: c.Name, Row: row.Name, Repeat: repeat + 1, Workload: row.Workload.String(), Load: row.Load.String(),
					Dir: r.rowDir(c.Name, row, repeat)}
				if row.Hypothesis != nil {
					p.Hypothesis = row.Hypothesis.String()
				}
				p.Complete = !r.Force && runComplete(p.Dir)
				out = append(out, p)
			}
		}
	}
	return out
}
