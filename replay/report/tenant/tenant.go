// Package tenant tells the users of a run apart: what each one asked for and got, how evenly
// the server was shared, and what a burst of one did to the others.
//
//  1. A [Table] takes the measured requests of a run, each with its user.
//  2. [Table.Tenants] are their counts, tokens and times to the first token, the largest share of
//     the work first; [Jain] says how even a division is.
//  3. [Table.Bursts] compares what the others waited during the bursts of one tenant with what
//     they waited otherwise.
//
// # Files
//
//   - tenant.go: requests by user, their work, and Jain's index
//   - burst.go: bursts of a tenant, and the times to the first token of the others
//
// Exported names may change in any release.
package tenant

import (
	"cmp"
	"slices"

	"reprise/trace/sample"
)

// A Request is what is told of one request.
type Request struct {
	User      int64
	DueNS     int64
	Succeeded bool
	Failed    bool
	Input     int64 // prompt tokens, as the server counted
	Cached    int64 // of them; −1 is not known
	Output    int64
	TTFTNS    int64 // −1 is none
}

// A Tenant is one user of a run. Tokens and times are of the requests that succeeded.
type Tenant struct {
	User                    int64
	Rows, Succeeded, Failed int64
	Input, Cached, Output   int64
	CachedUnknown           int64 // requests whose cached tokens are not known, and count as none
	TTFT                    sample.Values
	Work                    float64 // see outputWeight
}

// outputWeight is how many prompt tokens that were not cached are as much work as one token of
// the answer. Y. Sheng and others (2024), Fairness in serving large language models, weigh them
// so.
const outputWeight = 2

// Work is that of a request, or of several together: prompt tokens that were not cached, and twice
// the output tokens. cached is below zero where it is not known.
func Work(input, cached, output int64) float64 {
	return float64(input-max(cached, 0)) + outputWeight*float64(output)
}

func (r *Request) work() float64 { return Work(int64(r.Input), int64(r.Cached), int64(r.Output)) }

// Limits on what a table keeps.
const (
	maxTenants  = 4096    // further users are counted, and not kept
	maxRequests = 1 << 18 // with more there are no bursts
	tenantExact = 1 << 12 // values of a tenant that are kept exactly
)

// A Table holds the requests of a run by their users. The zero value is empty.
type Table struct {
	tenants map[int64]*Tenant
	Left    int64 // requests of users beyond the first 4,096

	requests []arrived
	full     bool // there were more
}

// arrived is what bursts are found by.
type arrived struct {
	due, ttft int64
	user      int64
	work      float64
}

// Add takes a request of the measured window.
func (t *Table) Add(r Request) {
	if t.tenants == nil {
		t.tenants = map[int64]*Tenant{}
	}
	of := t.tenants[r.User]
	if of == nil {
		if len(t.tenants) == maxTenants {
			t.Left++
			return
		}
		of = &Tenant{User: r.User, TTFT: sample.Values{Limit: tenantExact}}
		t.tenants[r.User] = of
	}
	of.Rows++
	if r.Failed {
		of.Failed++
	}
	if !r.Succeeded {
		return
	}
	of.Succeeded++
	of.Input, of.Output, of.Work = of.Input+r.Input, of.Output+r.Output, of.Work+r.work()
	if r.Cached < 0 {
		of.CachedUnknown++
	}
	of.Cached += max(r.Cached, 0)
	if r.TTFTNS >= 0 {
		of.TTFT.Add(r.TTFTNS)
	}
	if t.full = t.full || len(t.requests) == maxRequests; !t.full {
		t.requests = append(t.requests, arrived{r.DueNS, r.TTFTNS, r.User, r.work()})
	}
}

// Tenants are all users, the one with the most work first.
func (t *Table) Tenants() (out []*Tenant) {
	for _, of := range t.tenants {
		out = append(out, of)
	}
	slices.SortFunc(out, func(a, b *Tenant) int {
		return cmp.Or(cmp.Compare(b.Work, a.Work), cmp.Compare(a.User, b.User))
	})
	return out
}

// Jain is the index of fairness, (Σx)² ÷ (n·Σx²): 1 where all have the same, 1/n where one has
// all. R. Jain, D. Chiu and W. Hawe (1984), A quantitative measure of fairness and
// discrimination. It is not ok where nobody has anything.
func Jain(x []float64) (index float64, ok bool) {
	sum, squares := 0.0, 0.0
	for _, v := range x {
		sum, squares = sum+v, squares+v*v
	}
	if squares == 0 {
		return 0, false
	}
	return sum * sum / (float64(len(x)) * squares), true
}
