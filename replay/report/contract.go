package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"reprise/replay/figure"
	"reprise/replay/result"
	"reprise/trace/doc"
	"reprise/trace/sample"
	"reprise/trace/textpage"
)

// A Contract is what a run has to keep to. Package contract reads them.
type Contract interface {
	// Check refuses a contract that cannot be judged where the report asks for the
	// objectives of slo.
	Check(slo SLO) error

	// NeedsSteady says that a clause is about the steady state of the run.
	NeedsSteady() bool

	// Judge begins to hold a run against the contract. Goodput without objectives of
	// its own has those of slo. steady is nil where it was not looked for. newEvidence makes
	// what further evidence is kept in.
	Judge(run *result.Run, slo SLO, steady *Steady, newEvidence func() *Evidence) Judge
}

// A Judge holds a run against a contract.
type Judge interface {
	// Add takes a result within the run's window that succeeded or failed.
	Add(r *result.Result, failed bool)

	// Scopes says in its bits, from the lowest on, in which of the scopes of clauses about
	// sessions a session is that begins with a result; 0 without such clauses.
	Scopes(r *result.Result) uint64

	// Result judges every clause. all is the evidence of all requests. The run took so
	// many nanoseconds; zeros tells whether a missing count of cached tokens is none.
	Result(all *Evidence, durationNS int64, zeros bool) *ContractResult
}

// Outcomes of a clause.
const (
	Holds    = "holds"
	Fails    = "fails"
	Unjudged = "cannot be judged" // the run has too few values, or none
)

// A ContractResult is a contract held against a run.
type ContractResult struct {
	Name    string         `json:"name"`
	Holds   bool           `json:"holds"`  // every clause does
	Judged  bool           `json:"judged"` // every clause could be
	Clauses []ClauseResult `json:"clauses"`
}

// A ClauseResult is a clause held against a run.
type ClauseResult struct {
	Clause   string   `json:"clause"`          // such as p95 ttft <= 1s
	Where    string   `json:"where,omitempty"` // which requests it is about; empty is all
	From     string   `json:"from,omitempty"`  // due or sent: where its latency begins
	SLO      string   `json:"slo,omitempty"`   // of goodput
	Outcome  string   `json:"outcome"`         // [Holds], [Fails] or [Unjudged]
	Why      string   `json:"why,omitempty"`   // it cannot be judged
	Measured *float64 `json:"measured"`        // null where the run cannot say
	Allowed  float64  `json:"allowed"`
	Unit     string   `json:"unit"` // of both: ms, s, share, 1/s, times, per million tokens, per session

	// Margin is how far the measurement is within what is allowed, as a share of
	// that; below zero it is beyond. Null where nothing was measured, and where
	// nothing is allowed.
	Margin *float64 `json:"margin"`

	Samples int64 `json:"samples"`                  // values, requests or sessions that the measurement rests on
	Needed  int64 `json:"needed_samples,omitempty"` // by a percentile p: 1/(1−p)

	// Estimated is how many of the requests have counts of tokens that the server did
	// not make, where the measurement rests on them.
	Estimated int64 `json:"estimated_requests,omitempty"`

	// Censored is how many of the sessions had requests left when the run ended. A clause
	// holds or fails whatever became of them, or cannot be judged.
	Censored int64 `json:"censored_sessions,omitempty"`
}

// Fails tells whether some clause does. A contract may fail and have clauses that
// cannot be judged.
func (r *ContractResult) Fails() bool {
	return slices.ContainsFunc(r.Clauses, func(c ClauseResult) bool { return c.Outcome == Fails })
}

// A Timing is a latency: TTFT, E2E, headers, TPOT, ITL or token ITL, and [FromSent]
// or [FromDue]. The last three have one origin, FromSent.
type Timing struct {
	Of     *figure.Subject
	Origin int
}

// Evidence is what a contract is judged by: counts of a set of requests, and the
// latencies that were asked for.
type Evidence struct {
	Succeeded, Failed int64
	Prompt, Output    int64 // tokens of the requests that succeeded
	PromptEstimates   int64 // of these, requests whose prompt the server did not count
	OutputEstimates   int64 // and those whose output a tokenizer counted
	OutputImpossible  int64 // and those whose output count cannot be, which Output lacks

	// Of the evidence of all requests alone: the sessions that began in the window, those
	// that ended for each second, and why not all have a slowdown.
	Sessions      []JudgedSession
	SessionsPerS  *float64
	SlowdownLacks string
	Summary       *Summary // for what the servers say

	cache     reuse
	exact     int // values of a latency that are kept exactly
	latencies []keptLatency
	of        []int64 // a latency of one row
}

type keptLatency struct {
	timing Timing
	values *sample.Values
}

// Keep makes the evidence keep a latency.
func (e *Evidence) Keep(t Timing) {
	if e.Values(t) == nil {
		e.latencies = append(e.latencies, keptLatency{t, &sample.Values{Limit: e.exact}})
	}
}

// Values returns a latency in nanoseconds, nil where it is not kept.
func (e *Evidence) Values(t Timing) *sample.Values {
	for i := range e.latencies {
		if e.latencies[i].timing == t {
			return e.latencies[i].values
		}
	}
	return nil
}

// HitRatio is the measured hit ratio of the prefix cache, nil where the server reports
// none, and the number of requests that it rests on. With zeros, a missing count of
// cached tokens is none.
func (e *Evidence) HitRatio(zeros bool) (ratio *float64, rows int64) {
	c := e.cache.summary(zeros)
	return c.Measured, c.Rows
}

// Add takes a successful result and its durations. It does not count in Succeeded.
func (e *Evidence) Add(r *result.Result, d *Durations) {
	e.Prompt += int64(InputTokens(r))
	if r.Input == nil {
		e.PromptEstimates++
	}
	if r.Output != nil {
		e.Output += int64(*r.Output)
		if r.OutputFrom == result.FromTokenizer {
			e.OutputEstimates++
		}
	}
	if r.Contradictions() != 0 && r.Output == nil {
		e.OutputImpossible++
	}
	e.cache.add(r)
	for i := range e.latencies {
		e.of = d.Append(e.of[:0], r, e.latencies[i].timing)
		for _, v := range e.of {
			e.latencies[i].values.Add(v)
		}
	}
}

// Append appends the values of a latency that a successful result has, in nanoseconds: one,
// or one for each gap between its token events, or none.
func (l *Durations) Append(dst []int64, r *result.Result, t Timing) []int64 {
	var one Span
	for _, latency := range begun {
		if latency.of == t.Of {
			one = latency.spans(l)[t.Origin]
		}
	}
	switch t.Of {
	case figure.TPOT:
		one = l.TPOT
	case figure.ITL:
		for _, gap := range r.Gaps {
			dst = append(dst, gap)
		}
	case figure.TokenITL:
		return perToken(dst, r)
	}
	if one.OK {
		dst = append(dst, one.NS)
	}
	return dst
}

// String says whether the contract holds, and by how much it does not. Of one that
// holds it names the clause with the least room.
func (r *ContractResult) String() string {
	var fails, unjudged []string
	for i := range r.Clauses {
		switch c := &r.Clauses[i]; c.Outcome {
		case Fails:
			fault := c.subject() + " is " + c.figure()
			switch {
			case c.Margin == nil:
				fault += ", with " + c.limit() + " allowed"
			case strings.Contains(c.Clause, " >= "):
				fault += ", " + room(-*c.Margin) + " short of " + c.limit()
			default:
				fault += ", " + room(-*c.Margin) + " over " + c.limit()
			}
			fails = append(fails, fault)
		case Unjudged:
			unjudged = append(unjudged, c.subject()+": "+c.Why)
		}
	}
	what := "the contract"
	if r.Name != "" {
		what += ` "` + textpage.Plain(r.Name) + `"`
	}
	var says []string
	if len(fails) > 0 {
		says = append(says, fmt.Sprintf("%s is not met%s: %s", what, r.held(len(r.Clauses)-len(fails)-len(unjudged)),
			strings.Join(fails, "; ")))
		what = "it"
	}
	if len(unjudged) > 0 {
		says = append(says, what+" cannot be judged: "+strings.Join(unjudged, "; "))
	}
	if len(says) > 0 {
		return strings.Join(says, "; ")
	}
	out := what + " is met" + r.held(len(r.Clauses))
	least := math.Inf(1)
	var close *ClauseResult
	for i := range r.Clauses {
		if c := &r.Clauses[i]; c.Margin != nil && *c.Margin < least {
			close, least = c, *c.Margin
		}
	}
	if close != nil {
		out += fmt.Sprintf("; tightest: %s %s, %s headroom", close.subject(), close.figure(), room(least))
	}
	return out
}

// held says of how many of several clauses something is true.
func (r *ContractResult) held(n int) string {
	if len(r.Clauses) == 1 {
		return ""
	}
	return fmt.Sprintf(" (%d/%d)", n, len(r.Clauses))
}

// subject is what the clause is about, and limit what it allows.
func (c *ClauseResult) subject() string {
	subject, _ := c.parts()
	if c.From != "" {
		subject += " from " + originWords[c.From]
	}
	if c.Where != "" {
		subject += " where " + textpage.Plain(c.Where)
	}
	return subject
}

func (c *ClauseResult) limit() string {
	_, limit := c.parts()
	return limit
}

func (c *ClauseResult) parts() (subject, limit string) {
	at := strings.IndexAny(c.Clause, "<>")
	if at < 1 {
		return c.Clause, ""
	}
	return c.Clause[:at-1], strings.TrimLeft(c.Clause[at:], "<>= ")
}

// figure is what was measured. What is not a time, a share or a rate has its unit in
// its name.
func (c *ClauseResult) figure() string {
	out := inUnit(c.Measured, c.Unit)
	if c.Measured != nil && strings.HasPrefix(c.Unit, "per ") {
		out = doc.Number(*c.Measured)
	}
	if c.Measured != nil && c.Estimated > 0 {
		out += " (estimate)"
	}
	return out
}

// name is the clause with all that belongs to it.
func (c *ClauseResult) name() string {
	out := c.Clause
	if c.SLO != "" {
		out += ", slo " + c.SLO
	}
	if c.From != "" {
		out += ", from " + originWords[c.From]
	}
	if c.Where != "" {
		out += ", where " + textpage.Plain(c.Where)
	}
	return out
}

// verdict is the outcome with its margin. What is missing is in the sentence above.
func (c *ClauseResult) verdict() string {
	out := c.Outcome
	switch {
	case c.Margin == nil:
	case c.Outcome == Fails:
		out += " by " + room(-*c.Margin)
	default:
		out += ", " + room(*c.Margin) + " headroom"
	}
	return out
}

// room prints a margin, which may be of any size, as a percentage.
func room(margin float64) string { return doc.Number(margin*100) + " %" }

// contractLine is the sentence above the table.
func contractLine(s *Summary) string {
	line := s.Contract.String()
	line = strings.ToUpper(line[:1]) + line[1:] + "."
	if s.Contract.Holds && !s.Verdict.Trustworthy {
		line += " That is what the figures say, which cannot be trusted."
	}
	return line
}

var contractHead = []string{"clause", "measured", "outcome", "n"}

func contractRows(s *Summary) [][]string {
	if s.Contract == nil {
		return nil
	}
	return s.Contract.rows()
}

func (r *ContractResult) rows() (rows [][]string) {
	for i := range r.Clauses {
		c := &r.Clauses[i]
		rows = append(rows, []string{c.name(), c.figure(), c.verdict(), doc.Brief(c.Samples)})
	}
	return rows
}

// Table has a row for each clause: what was measured, and by how much it holds or fails.
func (r *ContractResult) Table(caption string) *doc.Table {
	return &doc.Table{Caption: caption, Head: contractHead, Rows: r.rows()}
}

// contractTitle says whose definitions the clauses have, where others are shown.
func contractTitle(s *Summary) string {
	if s.Peer != nil {
		return "Contract, under the definitions of reprise"
	}
	return "Contract"
}

// contractWord stands before the outcome of a contract.
const contractWord = "Contract"

// originWords are what a text calls the origin of a latency in a contract.
var originWords = map[string]string{"due": "schedule", "sent": "sent"}

func contractNotes(s *Summary) []doc.Note {
	c := s.Contract
	if c == nil {
		return nil
	}
	level := doc.Good
	switch {
	case c.Fails():
		level = doc.Bad
	case !c.Holds || !s.Verdict.Trustworthy:
		level = doc.Warn
	}
	return []doc.Note{{Level: level, Word: contractWord, Text: strings.TrimPrefix(contractLine(s), "The contract ")}}
}

func contractSection(s *Summary) doc.Section {
	rows := contractRows(s)
	if rows == nil {
		return doc.Section{}
	}
	return doc.Section{Title: contractTitle(s),
		Tables: []doc.Table{{Head: contractHead, Rows: rows,
			HeadTerms: repeat(termOf("contract.clauses.margin"), len(contractHead))}}}
}

// scenarioItems are what keeps a run from being valid: broken rules, and those that cannot be
// checked.
//
// Broken rules come first: they are what a person can mend.
func scenarioItems(r *result.Scenario) (items []string) {
	for _, b := range r.Broken {
		items = append(items, textpage.Plain(b.String()))
	}
	for _, u := range r.Unchecked {
		items = append(items, "not checked: "+textpage.Plain(u))
	}
	return items
}

// scenarioNotes are the stamp on a page.
func scenarioNotes(r *result.Scenario) []doc.Note {
	if r == nil {
		return nil
	}
	name := "Scenario " + textpage.Plain(r.Version)
	counted := fmt.Sprintf("%s of %s said that a prompt does not fit the context.", doc.Brief(r.TooLong),
		doc.Many(r.Answers, "answer"))
	switch {
	case r.Valid == nil:
		return []doc.Note{{Level: doc.Warn, Word: name + ", not stamped", Text: "the run did not finish."}}
	case *r.Valid:
		return []doc.Note{{Level: doc.Good, Word: name + ", submission valid",
			Text: "all rules were kept. " + counted}}
	}
	return []doc.Note{{Level: doc.Bad, Word: name + ", submission not valid", Text: counted, Items: scenarioItems(r)}}
}
