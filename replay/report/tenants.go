package report

import (
	"cmp"
	"slices"

	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/sample"
)

// outputWeight is how many prompt tokens that were not cached are as much work as one token of
// the answer. Y. Sheng and others (2024), Fairness in serving large language models, weigh them
// so.
const outputWeight = 2

// workOf is the work of a request, or of several together: prompt tokens that were not cached, and
// twice the output tokens. cached is below zero where it is not known.
func workOf(input, cached, output int64) float64 {
	return float64(input-max(cached, 0)) + outputWeight*float64(output)
}

// Limits on what is kept of users.
const (
	maxTenants  = 4096    // further users are counted, and not kept
	tenantExact = 1 << 12 // values of a user that are kept exactly
)

// A tenantTable has the requests of a run by their users. The zero value is empty.
type tenantTable struct {
	users map[int64]*tenantSums
	left  int64 // requests of users beyond the first 4,096
}

// tenantSums are of one user of a run. Tokens and times are of the requests that succeeded.
type tenantSums struct {
	user                    int64
	rows, succeeded, failed int64
	input, cached, output   int64
	cachedUnknown           int64 // requests whose cached tokens are not known, and count as none
	ttft                    sample.Values
	work                    float64 // see workOf
}

// add takes a request of the measured window.
func (t *tenantTable) add(r *result.Result, end Outcome) {
	if r.User == nil {
		return
	}
	if t.users == nil {
		t.users = map[int64]*tenantSums{}
	}
	of := t.users[*r.User]
	if of == nil {
		if len(t.users) == maxTenants {
			t.left++
			return
		}
		of = &tenantSums{user: *r.User, ttft: sample.Values{Limit: tenantExact}}
		t.users[*r.User] = of
	}

	of.rows++
	switch end {
	case Failed:
		of.failed++
		return
	case Succeeded:
		of.succeeded++
	default:
		return
	}

	input, output := int64(InputTokens(r)), int64(max(orUnknown(r.Output), 0))
	cached := int64(-1)
	if r.Cached != nil && r.Input != nil {
		cached = int64(*r.Cached)
	} else {
		of.cachedUnknown++
	}
	of.input, of.output, of.work = of.input+input, of.output+output, of.work+workOf(input, cached, output)
	of.cached += max(cached, 0)
	if ttft := Derive(r).TTFT[FromDue]; ttft.OK {
		of.ttft.Add(ttft.NS)
	}
}

// all are the users, the one with the most work first.
func (t *tenantTable) all() (out []*tenantSums) {
	for _, of := range t.users {
		out = append(out, of)
	}
	slices.SortFunc(out, func(a, b *tenantSums) int {
		return cmp.Or(cmp.Compare(b.work, a.work), cmp.Compare(a.user, b.user))
	})
	return out
}

// namedTenants is how many tenants a summary names at most, those with the most work.
const namedTenants = 50

// summary says how the tenants of a run fared; nil where there are not two. zeros tells whether a
// missing count of cached tokens is none.
func (t *tenantTable) summary(zeros bool) *Tenants {
	all := t.all()
	if len(all) < 2 {
		return nil
	}

	total := 0.0
	for _, of := range all {
		total += of.work
	}

	out := &Tenants{Tenants: int64(len(all)), Left: t.left}
	for _, of := range all[:min(len(all), namedTenants)] {
		ttft, _ := StatOf(&of.ttft)
		one := Tenant{User: of.user, Rows: of.rows, Succeeded: of.succeeded, Failed: of.failed,
			TTFTCount: ttft.Count, TTFTP50: ttft.P50, TTFTP99: ttft.P99, Input: of.input, Output: of.output}
		if of.cachedUnknown == 0 || zeros {
			one.Cached, one.Uncached = trace.Ptr(of.cached), trace.Ptr(of.input-of.cached)
		}
		if total > 0 {
			one.CostShare = Rounded(of.work/total, 1e6)
		}
		out.Each = append(out.Each, one)
	}
	return out
}
