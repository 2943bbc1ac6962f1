package main

import "testing"

// A folder keeps to its budget, a budget sinks with its folder, and the root has what is named.
func TestBudgetFaults(t *testing.T) {
	for name, c := range map[string]struct {
		sizes map[string]size
		fault bool
	}{
		"within":             {map[string]size{"trace": {lines: budgets["trace"]}, "docs": {}, "LICENSE": {}}, false},
		"a line too many":    {map[string]size{"trace": {lines: budgets["trace"] + 1}}, true},
		"far below":          {map[string]size{"trace": {lines: budgets["trace"] - slack - 1}}, true},
		"wide lines":         {map[string]size{"trace": {budgets["trace"], budgets["trace"]/oneWideIn + 1}}, true},
		"a new folder":       {map[string]size{"helpers": {lines: 10}}, true},
		"code in the docs":   {map[string]size{"docs": {lines: 1}}, true},
		"a file that strays": {map[string]size{"some-1.0-py3-none-any.whl": {}}, true},
	} {
		if got := budgetFaults(c.sizes); (len(got) > 0) != c.fault {
			t.Errorf("%s: %v", name, got)
		}
	}
}
