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

// More reasoning than output is told, where the records of its model show that it is a part.
func TestReasoningOver(t *testing.T) {
	r := NewReader(Inclusive, "")
	settle := func(output, reasoning, total int64) (Tokens, Findings) {
		c := Counts{}.With(Input, 10).With(Output, output).With(Reasoning, reasoning).With(Total, total)
		tokens, found, err := r.Read(&c, "m", false)
		if err != nil {
			t.Fatal(err)
		}
		return tokens, found
	}
	for range 3 {
		settle(40, 12, 50)
	}
	if tokens, found := settle(5, 12, 0); !found.Has(ReasoningOver) && !found.Has(ReasoningAdded) || *tokens.Reasoning > *tokens.Output {
		t.Errorf("%v: reasoning %d of output %d", found.All(), *tokens.Reasoning, *tokens.Output)
	}
}
