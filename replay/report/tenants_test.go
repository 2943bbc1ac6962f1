package report

import (
	"testing"

	"reprise/replay/result/resulttest"
	"reprise/trace"
)

// What is kept of users is bounded, and what is left out is counted.
func TestTenantsAreBounded(t *testing.T) {
	var table tenantTable
	for i := range int64(maxTenants + 10) {
		r := resulttest.Answer(i, i, 0, 5, 9)
		r.User = trace.Ptr(i)
		table.add(&r, Succeeded)
	}
	if len(table.all()) != maxTenants || table.left != 10 {
		t.Errorf("%d tenants, %d requests left", len(table.all()), table.left)
	}
}
