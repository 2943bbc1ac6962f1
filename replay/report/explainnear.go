package report

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// strangePercentile is one that reports do not have.
var strangePercentile = regexp.MustCompile(`^p\d[\d._]*_|_p\d[\d._]*$`)

// likeNames lists the names that are like an unknown one, at most five.
func likeNames(all []Definition, q string) []string {
	rest, statistic, _ := nameParts(q)
	if other := strangePercentile.ReplaceAllString(rest, ""); other != rest {
		rest, statistic = other, "p99"
	}
	type candidate struct {
		name string
		far  int
	}
	var found []candidate
	consider := func(name string) {
		last := name[strings.LastIndex(name, ".")+1:]
		far := min(distance(rest, name), distance(rest, last)+1)
		if far <= max(min(2, len(rest)/2), len(rest)/3) {
			if statistic != "" {
				name = statistic + "_" + name
			}
			found = append(found, candidate{name, far})
		}
	}
	for _, d := range all {
		for _, n := range d.names() {
			if !strings.ContainsAny(n, " *") {
				consider(n)
			}
		}
	}
	for n := range otherNames {
		consider(n)
	}
	slices.SortFunc(found, func(a, b candidate) int { return cmp.Or(a.far-b.far, strings.Compare(a.name, b.name)) })
	var out []string
	for _, c := range found {
		if len(out) < 5 && meaningOf(all, c.name) != nil && !slices.Contains(out, c.name) {
			out = append(out, c.name)
		}
	}
	return out
}

// distance is Levenshtein's: how many letters to change, add or take.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := before
			if a[i] != b[j] {
				cost++
			}
			before = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
