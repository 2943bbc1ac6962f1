package bench

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// A run that is made again because the client was the limit is told of, with the reason and which attempt it is.
func TestUntrustedRunsAreToldOf(t *testing.T) {
	for _, c := range []struct {
		heals bool
		want  []string
	}{
		{true, []string{"level 20 req/s: 10 ", "level 40 req/s: 20 ", "level 40 req/s was not trustworthy (",
			"level 60 req/s: 30 "}},
		{false, []string{"level 20 req/s: 10 ", "level 40 req/s: 20 ", "level 40 req/s was not trustworthy ("}},
	} {
		var told []string
		p := &pretended{serves: 1000, sends: 30, heals: c.heals}
		s := Sweep{Target: p, Process: "constant", Ladder: Ladder{Loads: []float64{20, 40, 60}, Resolution: .05}, Duration: 500 * time.Millisecond, Warmup: "0s",
			StopTTFT: 10 * time.Second, Dir: dirOf(t), Begins: func(b Beginning) { told = append(told, b.String()) }}
		for range 2 { // the second time only what is not there whole is made, and told of
			if _, err := s.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if len(told) != len(c.want) || slices.ContainsFunc(told, func(s string) bool {
				return !slices.ContainsFunc(c.want, func(begin string) bool { return strings.HasPrefix(s, begin) })
			}) {
				t.Fatalf("%s\nwant %s", strings.Join(told, "\n"), c.want)
			}
			if again := told[2]; !strings.HasSuffix(again, "): again, the 2nd and last time") {
				t.Error(again)
			}
			if !c.heals {
				break // an untrusted level is measured anew
			}
		}
	}
}
