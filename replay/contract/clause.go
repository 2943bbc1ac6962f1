package contract

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"reprise/replay/report"
	units "reprise/trace/quantity"
)

// A Clause is one condition of a contract.
type Clause struct {
	quantity  *quantity
	statistic statistic
	allowed   float64    // in the unit of its quantity
	origin    int        // of a latency, and of goodput
	slo       report.SLO // of goodput; empty takes that of the report
	where     scope      // nil is every request
}

// A quantity is what a clause is about.
type quantity struct {
	name  string
	kind  quantityKind
	floor bool // it has to be at least something; else at most
}

type quantityKind uint8

const (
	latencyFrom   quantityKind = iota // has a statistic and an origin
	latencyWithin                     // has a statistic
	shareOf
	rateOf
	goodShare // has an SLO and an origin
	costOf

	// Of sessions; the first two have a statistic.
	sessionTime
	sessionSlowdown
	sessionSuccess
	sessionRate
	sessionCost
)

const errorRate = "error_rate"

var quantities = []quantity{
	{"ttft", latencyFrom, false},
	{"e2e", latencyFrom, false},
	{"headers", latencyFrom, false},
	{"tpot", latencyWithin, false},
	{"itl", latencyWithin, false},
	{"itl_token", latencyWithin, false},
	{errorRate, shareOf, false},
	{"requests_per_s", rateOf, true},
	{"prompt_tokens_per_s", rateOf, true},
	{"output_tokens_per_s", rateOf, true},
	{"goodput", goodShare, true},
	{"attainment", goodShare, true},
	{"hit_ratio", shareOf, true},
	{"cost_per_million_output_tokens", costOf, false},
	{"session_time", sessionTime, false},
	{"session_slowdown", sessionSlowdown, false},
	{"session_success", sessionSuccess, true},
	{"sessions_per_s", sessionRate, true},
	{"cost_per_session", sessionCost, false},
}

// Units of costs and of ratios.
const (
	unitCost        = "per million tokens"
	unitSessionCost = "per session"
	unitTimes       = "times"
)

func (m *quantity) ofSessions() bool { return m.kind >= sessionTime }
func (m *quantity) cost() bool       { return m.kind == costOf || m.kind == sessionCost }

// hasStatistic says that a percentile, the mean or the maximum stands before it.
func (m *quantity) hasStatistic() bool {
	return m.latency() || m.kind == sessionTime || m.kind == sessionSlowdown
}

func (m *quantity) latency() bool   { return m.kind == latencyFrom || m.kind == latencyWithin }
func (m *quantity) hasSLO() bool    { return m.kind == goodShare }
func (m *quantity) hasOrigin() bool { return m.kind == latencyFrom || m.hasSLO() }

func (m *quantity) unit() string {
	switch m.kind {
	case latencyFrom, latencyWithin:
		return "ms"
	case shareOf, goodShare, sessionSuccess:
		return "share"
	case rateOf, sessionRate:
		return "1/s"
	case sessionTime:
		return "s"
	case sessionSlowdown:
		return unitTimes
	case sessionCost:
		return unitSessionCost
	}
	return unitCost
}

func (m *quantity) operator() string {
	if m.floor {
		return ">="
	}
	return "<="
}

// originNames are the words for report.FromSent and report.FromDue.
var originNames = [...]string{report.FromSent: "sent", report.FromDue: "due"}

// A statistic is a percentile in millionths, the mean or the maximum; 0 is none.
type statistic int64

const (
	meanOf     statistic = -1
	maxOf      statistic = -2
	millionths           = 1_000_000
)

func (s statistic) String() string {
	switch s {
	case 0:
		return ""
	case meanOf:
		return "mean"
	case maxOf:
		return "max"
	}
	return "p" + strconv.FormatFloat(float64(s)/(millionths/100), 'f', -1, 64)
}

// needed is how many values it takes: 1/(1−p) for a percentile.
func (s statistic) needed() int64 {
	if s <= 0 {
		return 1
	}
	rest := millionths - int64(s)
	return (millionths + rest - 1) / rest
}

// parseStatistic reads p95, p99.9, mean or max.
func parseStatistic(s string) (statistic, bool) {
	switch s {
	case "mean":
		return meanOf, true
	case "max":
		return maxOf, true
	}
	figure, ok := strings.CutPrefix(s, "p")
	if !ok || strings.Trim(figure, digits) != "" {
		return 0, false
	}
	p, err := strconv.ParseFloat(figure, 64)
	out := statistic(math.Round(p * (millionths / 100)))
	if err != nil || math.Abs(float64(out)-p*(millionths/100)) > 1e-6 || out <= 0 || out >= millionths {
		return 0, false
	}
	return out, true
}

// String writes the condition as parseClause reads it, without its scope.
func (c *Clause) String() string {
	if c.quantity == nil {
		return ""
	}
	limit := ""
	switch c.quantity.unit() {
	case "ms":
		limit = time.Duration(math.Round(c.allowed * 1e6)).String()
	case "s":
		limit = time.Duration(math.Round(c.allowed * 1e9)).String()
	case "share":
		limit = strconv.FormatFloat(*report.Rounded(c.allowed*100, 1e7), 'f', -1, 64) + "%"
	default:
		limit = strconv.FormatFloat(c.allowed, 'f', -1, 64)
	}
	out := c.quantity.name + " " + c.quantity.operator() + " " + limit
	if c.quantity.hasStatistic() {
		out = c.statistic.String() + " " + out
	}
	return out
}

// Whole writes the clause with all that it says: also its scope, its objectives, and
// from where it counts when that is not from schedule.
func (c *Clause) Whole() string {
	out := c.String()
	if c.quantity != nil && c.quantity.hasOrigin() && c.origin != report.FromDue {
		out += " from " + originNames[c.origin]
	}
	if slo := c.slo.String(); slo != "" {
		out += " (" + slo + ")"
	}
	if c.where != nil {
		out += " where " + c.where.String()
	}
	return out
}

// parseClause reads a condition such as "p95 ttft <= 1s". Errors are misplaced.
func parseClause(s string) (Clause, error) {
	all, err := lex(s)
	if err != nil {
		return Clause{}, err
	}
	c, rest, err := parseSubject(all)
	if err != nil {
		return Clause{}, err
	}
	if op := rest[0]; op.kind != lexOperator || op.text != c.quantity.operator() {
		return Clause{}, misplacedf(op.at, "want %s after %s", c.quantity.operator(), c.quantity.name)
	}
	value, rest := rest[1], rest[2:]
	if value.kind != lexWord {
		example := "2.5"
		switch c.quantity.unit() {
		case "ms":
			example = "200ms"
		case "s":
			example = "300s"
		case "share":
			example = "1%"
		}
		return Clause{}, misplacedf(value.at, "want a limit, such as %s", example)
	}
	if unit := rest[0]; unit.kind == lexWord && strings.Trim(value.text, digits) == "" && strings.IndexAny(unit.text, digits) != 0 { // 40 ms
		value.text += unit.text
		rest = rest[1:]
	}
	if rest[0].kind != lexEnd {
		return Clause{}, misplacedf(rest[0].at, "want nothing after the limit; which requests a clause is about is said by where")
	}
	if c.allowed, err = c.quantity.parseLimit(value.text); err != nil {
		return Clause{}, &misplaced{value.at, err.Error()}
	}
	return c, nil
}

const digits = "0123456789."

// parseSubject reads what a clause is about, and returns what follows.
func parseSubject(all []lexeme) (c Clause, rest []lexeme, err error) {
	name, rest := all[0], all[1:]
	if stat, ok := parseStatistic(name.text); ok && name.kind == lexWord {
		c.statistic = stat
		name, rest = rest[0], rest[1:]
	}
	var names []string
	for i := range quantities {
		names = append(names, quantities[i].name)
		if quantities[i].name == name.text {
			c.quantity = &quantities[i]
		}
	}
	switch {
	case name.kind == lexWord && c.quantity != nil:
	case c.statistic == 0 && len(all) > 2 && all[1].kind == lexWord:
		return c, nil, misplacedf(name.at, "want a percentile such as p95 or p99.9, mean or max before the metric")
	default:
		return c, nil, misplacedf(name.at, "want a metric, one of %s", strings.Join(names, ", "))
	}
	switch {
	case c.quantity.hasStatistic() && c.statistic == 0:
		return c, nil, misplacedf(name.at, "say which %s: a percentile such as p95, mean or max before it", name.text)
	case !c.quantity.hasStatistic() && c.statistic != 0:
		return c, nil, misplacedf(all[0].at, "%s is one figure, without a percentile or a mean", name.text)
	case c.quantity.hasOrigin():
		c.origin = report.FromDue
	}
	return c, rest, nil
}

// parseLimit reads what is allowed. Durations and shares want their unit, because
// the tools that leave it out disagree on it.
func (m *quantity) parseLimit(s string) (float64, error) {
	switch m.unit() {
	case "ms":
		if d, err := units.Latency(s); err == nil && d > 0 && d <= report.MaxInstant {
			return float64(d) / 1e6, nil
		}
		return 0, errors.New("write the limit as a duration above zero with its unit, such as 200ms or 5s")
	case "s":
		if d, err := units.Latency(s); err == nil && d > 0 && d <= report.MaxInstant {
			return d.Seconds(), nil
		}
		return 0, errors.New("write the limit as a duration above zero with its unit, such as 300s or 10min")
	case "share":
		figure, ok := strings.CutSuffix(s, "%")
		v, err := strconv.ParseFloat(figure, 64)
		if !ok || err != nil || !(v >= 0 && v <= 100) || v < 1e-7 && m.floor {
			return 0, errors.New("write the limit as a percentage, such as 1%")
		}
		return *report.Rounded(v/100, 1e9), nil
	}
	if v, err := strconv.ParseFloat(s, 64); err == nil && v > 0 && v < math.MaxInt32 {
		return v, nil
	}
	return 0, errors.New("write the limit as a number above zero")
}

// Percentile is the percentile that a clause is about as a share, 0.99 for a p99. It
// is not ok for a clause about something else.
func (c *Clause) Percentile() (share float64, ok bool) {
	return float64(c.statistic) / millionths, c.statistic > 0
}

// At is the same clause about another percentile, which is cut to a millionth; 1 is
// the maximum.
func (c Clause) At(share float64) Clause {
	c.statistic = statistic(max(math.Round(share*millionths), 1))
	if c.statistic >= millionths {
		c.statistic = maxOf
	}
	return c
}
