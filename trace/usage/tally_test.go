package usage

import (
	"reflect"
	"strings"
	"testing"
)

// Each finding has a count of its own and words of its own.
func TestTally(t *testing.T) {
	if n := reflect.TypeFor[Tally]().NumField(); n != int(findings) {
		t.Errorf("%d counts for %d findings", n, findings)
	}
	said := map[string]bool{}
	for one := range findings {
		var tally Tally
		tally.Add(1 << one)
		tally.Add(1 << one)
		told := 0
		tally.Each(func(which Finding, n int64) {
			if told++; which != one || n != 2 {
				t.Errorf("finding %d is counted as %d, %d times", one, which, n)
			}
		})
		if told != 1 || one.Says() == "" || said[one.Says()] || !strings.HasPrefix(one.String(), "records "+one.Says()) {
			t.Errorf("finding %d: %q, told %d times", one, one, told)
		}
		said[one.Says()] = true
	}
}

// More reasoning than output is told, where the total shows that all of it is a part.
func TestReasoningOver(t *testing.T) {
	c := Counts{}.With(Input, 10).With(Output, 5).With(Reasoning, 4).With(Thoughts, 4).With(Total, 15)
	tokens, found, err := NewReader(Inclusive, "").Settle(&c)
	if err != nil || !found.Has(ReasoningOver) || *tokens.Reasoning != 5 || *tokens.Output != 5 {
		t.Errorf("%v: reasoning %d of output %d, %v", found.All(), *tokens.Reasoning, *tokens.Output, err)
	}
}
