package report

import "reprise/replay"

// EndpointRetries say what an endpoint left to the others, and took from them.
type EndpointRetries struct {
	Name     string `json:"name"`
	Attempts int64  `json:"attempts_requests"`            // that went to it
	PassedOn int64  `json:"passed_on_requests"`           // of these, that failed and went on to the next endpoint
	TookOver int64  `json:"took_over_requests"`           // whose last attempt was here, and whose first was not
	Answered int64  `json:"took_over_succeeded_requests"` // of these, that succeeded
}

// spread counts the attempts of a request at each endpoint. A retry goes to the one
// behind, so that the last of them and their number tell where the others were.
func (r *Retries) spread(of *replay.Result, run *replay.Run) {
	n := int32(min(len(run.Endpoints), maxParts))
	if !run.RetryOther || of.Endpoint == nil || *of.Endpoint < 0 || *of.Endpoint >= n || of.Attempts < 1 {
		return
	}
	if r.ByEndpoint == nil {
		for _, name := range run.Endpoints[:n] {
			r.ByEndpoint = append(r.ByEndpoint, EndpointRetries{Name: name})
		}
	}
	last, before := &r.ByEndpoint[*of.Endpoint], of.Attempts-1
	last.Attempts++
	for back := range n {
		times := before / n
		if back > 0 && back <= before%n {
			times++
		}
		e := &r.ByEndpoint[(*of.Endpoint-back+n)%n]
		e.Attempts += int64(times)
		e.PassedOn += int64(times)
	}
	if before%n == 0 {
		return // it ended where it began
	}
	last.TookOver++
	if end, _ := outcomeOf(of); end == succeeded {
		last.Answered++
	}
}

var endpointRetryHead = []string{"endpoint", "attempts", "failed and passed on", "taken over", "of these succeeded"}

func endpointRetryRows(s *Summary) (rows [][]string) {
	if s.Retries == nil {
		return nil
	}
	for _, e := range s.Retries.ByEndpoint {
		rows = append(rows, []string{plain(e.Name), count(e.Attempts), count(e.PassedOn), count(e.TookOver), count(e.Answered)})
	}
	return rows
}
