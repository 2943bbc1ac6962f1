// Package figure lists what a run can be judged by, and reads its names.
//
// A [Figure] is a [Subject] such as the time to first token, with a [Statistic] where the subject has
// many values: p99_ttft. [Parse] reads every spelling that people and other tools have for one:
//
//	p99_ttft   p99 ttft   ttft-p99   TTFT_P99   p99_ttft_ms   median_ttft   error_share
//
// and [Figure.String] writes one, p99_ttft. Clauses of a contract, the primary metric of a comparison,
// hypotheses of a suite, conditions to abort on, objectives of a request, the glossary, what Prometheus is given and
// what shells complete ask here; package report computes the figures of a run.
//
// # Files
//
//   - figure.go: subjects, units, statistics, and a figure's spelling and label
//   - list.go: the list
//   - parse.go: the spellings that are read, and the nearest name to one that is not
//
// Exported names may change in any release.
package figure

import (
	"math"
	"strconv"
	"strings"
)

// A Unit is that of a figure's value in results, JSON and tables.
type Unit string

// The units. A share is between 0 and 1.
const (
	Milliseconds Unit = "ms"
	Seconds      Unit = "s"
	Share        Unit = "share"
	PerSecond    Unit = "1/s"
	Requests     Unit = "requests"
	Times        Unit = "times"
	MiB          Unit = "MiB"
	PerMillion   Unit = "per million tokens" // a price
	PerSession   Unit = "per session"        // a price
)

// IsTime tells whether the unit is one of time, in which less is faster.
func (u Unit) IsTime() bool { return u == Milliseconds || u == Seconds }

// Better says which values of a figure are better.
type Better int8

// Neither is what a load is, and not how well it was served.
const (
	Neither Better = iota
	Lower
	Higher
)

// A Subject is what a figure is about.
type Subject struct {
	Name   string
	Label  string // for people, such as TTFT
	Unit   Unit
	Better Better

	Spread   bool // it has many values, so that a figure of it has a statistic
	Origin   bool // it counts from when a request was due, unless it is asked from when it was sent
	Sessions bool // it is of whole sessions
	Servers  bool // the servers say it of themselves

	// Its meaning and how it is computed. Both are empty where a report defines several subjects together.
	Definition, Formula string

	defined []string // names of its definitions in a report; empty is its own name
	also    []string // other names
}

// A Statistic is a percentile in millionths, or one of the constants. The zero Statistic is none.
type Statistic int64

// What is not a percentile.
const (
	Mean Statistic = -1
	Max  Statistic = -2
	Min  Statistic = -3

	millionths = 1_000_000
)

// Percentiles that summaries have.
const (
	P50  Statistic = 500_000
	P90  Statistic = 900_000
	P95  Statistic = 950_000
	P99  Statistic = 990_000
	P999 Statistic = 999_000
)

// Percentile is the statistic of a share above 0, cut to a millionth: 0.99 is p99. From 1 on it is the maximum.
func Percentile(share float64) Statistic {
	s := Statistic(max(math.Round(share*millionths), 1))
	if s >= millionths {
		return Max
	}
	return s
}

// String writes p99, p99.9, mean, max, min, or nothing.
func (s Statistic) String() string {
	switch s {
	case 0:
		return ""
	case Mean:
		return "mean"
	case Max:
		return "max"
	case Min:
		return "min"
	}
	return "p" + strconv.FormatFloat(float64(s)/(millionths/100), 'f', -1, 64)
}

// Share is a percentile as a share, 0.99 for p99. It is not ok for what is no percentile.
func (s Statistic) Share() (share float64, ok bool) { return float64(s) / millionths, s > 0 }

// Needed is how many values it takes: 1/(1−p) for a percentile p.
func (s Statistic) Needed() int64 {
	if s <= 0 {
		return 1
	}
	rest := millionths - int64(s)
	return (millionths + rest - 1) / rest
}

// Fraction is a percentile as numerator and denominator, a power of ten of at least 1,000.
func (s Statistic) Fraction() (num, den int64) {
	num, den = int64(s), millionths
	for den > 1000 && num%10 == 0 {
		num, den = num/10, den/10
	}
	return num, den
}

// A Figure is one number of a run. The zero Figure is none.
type Figure struct {
	*Subject
	Statistic Statistic
}

// Of is a statistic of a subject; 0 is that of one without statistics.
func Of(s Statistic, of *Subject) Figure { return Figure{of, s} }

// String is the name that is printed: p99_ttft, error_rate. It is empty for none.
func (f Figure) String() string { return f.join("_", Subject.name) }

// Words is the name as a clause of a contract has it: p99 ttft.
func (f Figure) Words() string { return f.join(" ", Subject.name) }

func (s Subject) name() string { return s.Name }

func (f Figure) join(by string, name func(Subject) string) string {
	switch {
	case f.Subject == nil:
		return ""
	case f.Statistic == 0:
		return name(*f.Subject)
	}
	return f.Statistic.String() + by + name(*f.Subject)
}

// Title is the label with the statistic behind it: TTFT p99.
func (f Figure) Title() string { return strings.TrimSpace(f.Label + " " + f.Statistic.String()) }
