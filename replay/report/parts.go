package report

import (
	"cmp"
	"fmt"
	"slices"

	"reprise/replay/result"
	"reprise/trace/page"
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

// Parts tell requests apart by where they went and who answered.
type parts struct {
	byEndpoint map[int32]*group
	byHeader   [result.MaxRecordHeaders]map[int32]*group
	absent     [result.MaxRecordHeaders]int64
	retries    Retries
}

// maxParts bounds the groups of one kind: a file with more is damaged, and what is
// beyond is not distinguished.
const maxParts = 2048

// of counts a result and returns its groups.
func (p *parts) of(r *result.Result, make func() *group) (groups []*group) {
	p.retries.add(r)
	if r.Endpoint != nil {
		groups = append(groups, find(&p.byEndpoint, *r.Endpoint, make))
	}
	for i, at := range r.Served[:min(len(r.Served), result.MaxRecordHeaders)] {
		if at < 0 {
			p.absent[i]++
			continue
		}
		groups = append(groups, find(&p.byHeader[i], at, make))
	}
	for _, g := range groups {
		g.rows++
	}
	return groups
}

func find(in *map[int32]*group, at int32, make func() *group) *group {
	if *in == nil {
		*in = map[int32]*group{}
	}
	if len(*in) >= maxParts && (*in)[at] == nil {
		at = -1
	}
	if (*in)[at] == nil {
		(*in)[at] = make()
	}
	return (*in)[at]
}

// list names groups by their indexes.
func list(of map[int32]*group, names []string) (out []Part) {
	for at, g := range of {
		name := fmt.Sprintf("#%d", at)
		switch {
		case at < 0:
			name = "(others)"
		case int(at) < len(names):
			name = names[at]
		}
		out = append(out, Part{name, g.summary()})
	}
	return out
}

// endpoints are in the order in which they were given.
func (p *parts) endpoints(run *result.Run) []Part {
	out := list(p.byEndpoint, run.Endpoints)
	if len(out) < 2 {
		return nil
	}
	slices.SortStableFunc(out, func(a, b Part) int {
		return cmp.Or(cmp.Compare(slices.Index(run.Endpoints, a.Name), slices.Index(run.Endpoints, b.Name)),
			cmp.Compare(a.Name, b.Name))
	})
	return out
}

// shownValues of a header get a line of their own.
const shownValues = 20

func (p *parts) headers(run *result.Run) (out []HeaderPart) {
	for i, served := range run.Served[:min(len(run.Served), result.MaxRecordHeaders)] {
		h := HeaderPart{Header: served.Header, Absent: p.absent[i], Values: list(p.byHeader[i], served.Values)}
		slices.SortFunc(h.Values, func(a, b Part) int {
			return cmp.Or(cmp.Compare(b.Rows, a.Rows), cmp.Compare(a.Name, b.Name))
		})
		if n := len(h.Values); n > shownValues {
			rest := Part{Name: fmt.Sprintf("(%d others)", n-shownValues)}
			for _, v := range h.Values[shownValues:] {
				rest.Rows += v.Rows
				rest.Succeeded += v.Succeeded
			}
			h.Values = append(h.Values[:shownValues], rest)
		}
		if h.Values == nil {
			h.Values = []Part{}
		}
		out = append(out, h)
	}
	return out
}

var (
	endpointHead = append([]string{"endpoint"}, groupHead...)
	servedHead   = append([]string{"value"}, groupHead...)
)

func endpointRows(s *Summary) (rows [][]string) {
	for _, e := range s.ByEndpoint {
		rows = append(rows, append([]string{textpage.Plain(e.Name)}, e.row()...))
	}
	return rows
}

func servedRows(h *HeaderPart) (rows [][]string) {
	for _, v := range h.Values {
		rows = append(rows, append([]string{textpage.Plain(v.Name)}, v.row()...))
	}
	if h.Absent > 0 {
		rows = append(rows, []string{"none", page.Brief(h.Absent), "–", "–", "–"})
	}
	return rows
}

// partSection tells requests apart by who answered.
func partSection(s *Summary) page.Section {
	out := page.Section{Title: "Who answered"}
	if len(s.ByEndpoint) > 1 {
		out.Tables = append(out.Tables, page.Table{Caption: "By endpoint, TTFT from sent", Head: endpointHead,
			Rows: endpointRows(s), HeadTerms: repeat(termOf("groups"), len(endpointHead))})
	}
	if rows := endpointRetryRows(s); len(rows) > 0 {
		out.Tables = append(out.Tables, page.Table{Caption: "Retries at the next endpoint", Head: endpointRetryHead,
			Rows: rows, HeadTerms: repeat(termOf("retried"), len(endpointRetryHead))})
	}
	for _, h := range s.ByHeader {
		out.Tables = append(out.Tables, page.Table{Caption: "By " + h.Header + " of the response, TTFT from sent",
			Head: servedHead, Rows: servedRows(&h), HeadTerms: repeat(termOf("groups"), len(servedHead))})
	}
	return out
}

// spread counts the attempts of a request at each endpoint. A retry goes to the next
// endpoint, so the last one and the number of attempts tell where the others were.
func (r *Retries) spread(of *result.Result, run *result.Run) {
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
	if end, _ := OutcomeOf(of); end == Succeeded {
		last.Answered++
	}
}

var endpointRetryHead = []string{"endpoint", "attempts", "failed and passed on", "taken over", "of these succeeded"}

func endpointRetryRows(s *Summary) (rows [][]string) {
	if s.Retries == nil {
		return nil
	}
	for _, e := range s.Retries.ByEndpoint {
		rows = append(rows, []string{textpage.Plain(e.Name), page.Brief(e.Attempts), page.Brief(e.PassedOn),
			page.Brief(e.TookOver), page.Brief(e.Answered)})
	}
	return rows
}
