package report

import (
	"reprise/replay/result"
	"reprise/trace/doc"
	"reprise/trace/textpage"
)

func (r *Retries) add(of *result.Result) {
	if of.RetryAfterNS != nil {
		r.AskedLater++
	}
	if of.Attempts > 1 {
		r.Retried++
		r.Attempts += int64(of.Attempts) - 1
		if end, _ := OutcomeOf(of); end == Succeeded {
			r.Succeeded++
		}
	}
}

func (r *Retries) orNil() *Retries {
	if r.Retried == 0 && r.AskedLater == 0 {
		return nil
	}
	return r
}

// retrySection says what servers left to each other.
func retrySection(s *Summary) doc.Section {
	if s.Retries == nil || len(s.Retries.ByEndpoint) == 0 {
		return doc.Section{}
	}
	t := doc.Table{Caption: "Retries at the next endpoint", HeadTerms: repeat(termOf("retried"), 5),
		Head: []string{"endpoint", "attempts", "failed and passed on", "taken over", "of these succeeded"}}
	for _, e := range s.Retries.ByEndpoint {
		t.Rows = append(t.Rows, []string{textpage.Plain(e.Name), doc.Brief(e.Attempts), doc.Brief(e.PassedOn),
			doc.Brief(e.TookOver), doc.Brief(e.Answered)})
	}
	return doc.Section{Title: "Who answered", Tables: []doc.Table{t}}
}

// spread counts the attempts of a request at each endpoint. A retry goes to the next
// endpoint, so the last one and the number of attempts tell where the others were.
func (r *Retries) spread(of *result.Result, run *result.Run) {
	n := int32(min(len(run.Endpoints), maxGroups))
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
	if end, _ := OutcomeOf(of); end == Succeeded {
		last.Answered++
	}
}
