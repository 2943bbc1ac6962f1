package main

import "testing"

// A folder keeps to its budget, a budget sinks with its folder, and the root has what is named.
func TestBudgetFaults(t *testing.T) {
	for name, c := range map[string]struct {
		lines map[string]int
		fault bool
	}{
		"within":             {map[string]int{"trace": budgets["trace"], "docs": 0, "LICENSE": 0}, false},
		"a line too many":    {map[string]int{"trace": budgets["trace"] + 1}, true},
		"far below":          {map[string]int{"trace": budgets["trace"] - slack - 1}, true},
		"a new folder":       {map[string]int{"helpers": 10}, true},
		"code in the docs":   {map[string]int{"docs": 1}, true},
		"a file that strays": {map[string]int{"some-1.0-py3-none-any.whl": 0}, true},
	} {
		if got := budgetFaults(c.lines); (len(got) > 0) != c.fault {
			t.Errorf("%s: %v", name, got)
		}
	}
}
