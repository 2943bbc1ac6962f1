package contract

import (
	"slices"
	"strconv"
	"strings"

	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
)

// A scope says which requests a clause is about.
type scope interface {
	holds(r *result.Result, in *circumstances) bool
	String() string // as parseScope reads it
}

// circumstances are what of the run scopes depend on.
type circumstances struct {
	run    *result.Run
	steady *report.Interval // nil without a steady state
}

// anyOf and allOf have two parts or more.
type (
	anyOf []scope
	allOf []scope
)

func (a anyOf) holds(r *result.Result, in *circumstances) bool {
	return slices.ContainsFunc(a, func(s scope) bool { return s.holds(r, in) })
}

func (a allOf) holds(r *result.Result, in *circumstances) bool {
	return !slices.ContainsFunc(a, func(s scope) bool { return !s.holds(r, in) })
}

func (a anyOf) String() string {
	var parts []string
	for _, s := range a {
		parts = append(parts, s.String())
	}
	return strings.Join(parts, " or ")
}

func (a allOf) String() string {
	var parts []string
	for _, s := range a {
		text := s.String()
		if _, ok := s.(anyOf); ok {
			text = "(" + text + ")"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, " and ")
}

// A comparison holds a field against a value: a text, a number, or none.
type comparison struct {
	of     *field
	op     string
	text   string
	number int64
	none   bool
}

// A field is what a scope can tell requests apart by: a text, which is empty where
// there is none, or a number.
type field struct {
	name   string
	text   func(*result.Result, *circumstances) string
	number func(*result.Result) int32
	values []string // the only ones; nil is any
	ids    bool     // whole numbers from 0, or none
}

const fieldCategory = "category"

// stateSteady are the requests that were sent and finished in the steady state of the run,
// see [report.Steady]; the others have no state.
const stateSteady = "steady"

func idOf(id *int64) string {
	if id == nil {
		return ""
	}
	return strconv.FormatInt(*id, 10)
}

// Lengths are those that the server counted, of a request that succeeded, else those
// that the workload asked for: what a request asked decides where its failure
// counts, not how far its answer came.
var scopeFields = []field{
	{name: "class", text: func(r *result.Result, _ *circumstances) string { return r.Class }},
	{name: fieldCategory, text: func(r *result.Result, _ *circumstances) string { return r.Category },
		values: trace.Categories()},
	{name: "api", text: func(r *result.Result, _ *circumstances) string { return r.API },
		values: []string{result.APIChat, result.APICompletions, result.APIResponses, result.APIMessages,
			result.APIEmbeddings}},
	{name: "endpoint", text: func(r *result.Result, in *circumstances) string {
		if r.Endpoint == nil || *r.Endpoint < 0 || int(*r.Endpoint) >= len(in.run.Endpoints) {
			return ""
		}
		return in.run.Endpoints[*r.Endpoint]
	}},
	{name: "session", text: func(r *result.Result, _ *circumstances) string { return idOf(r.Session) }, ids: true},
	{name: "user", text: func(r *result.Result, _ *circumstances) string { return idOf(r.User) }, ids: true},
	{name: "model", text: func(r *result.Result, _ *circumstances) string { return r.Model }},
	{name: "adapter", text: func(r *result.Result, _ *circumstances) string { return r.Adapter }},
	{name: "state", values: []string{stateSteady}, text: func(r *result.Result, in *circumstances) string {
		if in.steady == nil || r.SentNS == nil || r.DoneNS == nil || !in.steady.Contains(*r.SentNS) ||
			!in.steady.Contains(*r.DoneNS) {
			return ""
		}
		return stateSteady
	}},
	{name: "input_tokens", number: func(r *result.Result) int32 { return countedOr(r, r.Input, r.WantInput) }},
	{name: "output_tokens", number: func(r *result.Result) int32 {
		return countedOr(r, r.Output, valueOr(r.WantOutput, 0))
	}},
}

func valueOr(n *int32, or int32) int32 {
	if n == nil {
		return or
	}
	return *n
}

func countedOr(r *result.Result, counted *int32, wanted int32) int32 {
	if end, _ := report.OutcomeOf(r); end == report.Succeeded && counted != nil {
		return *counted
	}
	return wanted
}

func (c *comparison) holds(r *result.Result, in *circumstances) bool {
	if c.of.number == nil {
		return (c.of.text(r, in) == c.text) == (c.op == "=") // none is the empty text
	}
	n := int64(c.of.number(r))
	switch c.op {
	case "=":
		return n == c.number
	case "!=":
		return n != c.number
	case "<":
		return n < c.number
	case "<=":
		return n <= c.number
	case ">":
		return n > c.number
	}
	return n >= c.number
}

func (c *comparison) String() string {
	value := c.text
	switch {
	case c.none:
		value = wordNone
	case c.of.number != nil:
		value = strconv.FormatInt(c.number, 10)
	case value == "" || value == wordNone || joins(value) ||
		strings.ContainsFunc(value, func(r rune) bool { return !inWord(r) }):
		quote := `"`
		if strings.Contains(value, quote) {
			quote = "'" // both cannot be in a text that was quoted
		}
		value = quote + value + quote
	}
	return c.of.name + " " + c.op + " " + value
}

// Words with a meaning of their own, unless they are quoted.
const (
	wordAnd  = "and"
	wordOr   = "or"
	wordNone = "none" // a field without a value
)

func joins(s string) bool { return s == wordAnd || s == wordOr }

// maxScopeDepth is how many parentheses may be within each other.
const maxScopeDepth = 32

// A scopeParser descends through
//
//	any        = all { "or" all }
//	all        = one { "and" one }
//	one        = "(" any ")" | comparison
//	comparison = field ( "=" | "!=" | "<" | "<=" | ">" | ">=" ) ( word | text | "none" )
type scopeParser struct {
	rest  []lexeme // ends in lexEnd
	depth int
}

// parseScope reads a scope such as "class = gold or input_tokens < 2048". Errors
// are misplaced.
func parseScope(s string) (scope, error) {
	all, err := lex(s)
	if err != nil {
		return nil, err
	}
	p := scopeParser{rest: all}
	out, err := p.any()
	if err != nil {
		return nil, err
	}
	if next := p.next(); next.kind != lexEnd {
		return nil, misplacedf(next.at, "want and, or, or the end")
	}
	return out, nil
}

func (p *scopeParser) next() lexeme { return p.rest[0] }

func (p *scopeParser) take() lexeme {
	l := p.rest[0]
	if l.kind != lexEnd {
		p.rest = p.rest[1:]
	}
	return l
}

// sees takes the next lexeme when it is the one that is meant.
func (p *scopeParser) sees(kind lexemeKind, text string) bool {
	l := p.next()
	if l.kind != kind || l.text != text {
		return false
	}
	p.take()
	return true
}

func (p *scopeParser) any() (scope, error) {
	parts, err := p.joined(wordOr, p.all)
	switch {
	case err != nil:
		return nil, err
	case len(parts) == 1:
		return parts[0], nil
	}
	return anyOf(parts), nil
}

func (p *scopeParser) all() (scope, error) {
	parts, err := p.joined(wordAnd, p.one)
	switch {
	case err != nil:
		return nil, err
	case len(parts) == 1:
		return parts[0], nil
	}
	return allOf(parts), nil
}

// joined reads parts with a word between them. What is in parentheses and needs
// none becomes part of the same list.
func (p *scopeParser) joined(by string, part func() (scope, error)) (out []scope, err error) {
	for {
		s, err := part()
		if err != nil {
			return nil, err
		}
		switch inner := s.(type) {
		case anyOf:
			if by == wordOr {
				out = append(out, inner...)
			} else {
				out = append(out, s)
			}
		case allOf:
			if by == wordAnd {
				out = append(out, inner...)
			} else {
				out = append(out, s)
			}
		default:
			out = append(out, s)
		}
		if !p.sees(lexWord, by) {
			return out, nil
		}
	}
}

func (p *scopeParser) one() (scope, error) {
	open := p.next()
	if !p.sees(lexParenthesis, "(") {
		return p.comparison()
	}
	if p.depth++; p.depth > maxScopeDepth {
		return nil, misplacedf(open.at, "more than %d parentheses within each other", maxScopeDepth)
	}
	s, err := p.any()
	if err != nil {
		return nil, err
	}
	p.depth--
	if end := p.next(); !p.sees(lexParenthesis, ")") {
		return nil, misplacedf(end.at, "want and, or, or a closing parenthesis")
	}
	return s, nil
}

func (p *scopeParser) comparison() (scope, error) {
	name := p.take()
	var names []string
	for _, f := range scopeFields {
		names = append(names, f.name)
	}
	i := slices.Index(names, name.text)
	if i < 0 || name.kind != lexWord {
		return nil, misplacedf(name.at, "want one of %s", strings.Join(names, ", "))
	}
	c := &comparison{of: &scopeFields[i]}
	op := p.take()
	switch {
	case op.kind != lexOperator:
		return nil, misplacedf(op.at, "want =, !=, <, <=, > or >= after %s", name.text)
	case c.of.number == nil && op.text != "=" && op.text != "!=":
		return nil, misplacedf(op.at, "%s is a text: want = or !=", name.text)
	}
	c.op = op.text
	return c, c.take(p.take())
}

// take sets the value.
func (c *comparison) take(value lexeme) (err error) {
	switch {
	case value.kind != lexWord && value.kind != lexQuoted || value.kind == lexWord && joins(value.text):
		return misplacedf(value.at, "want a value after %s", c.op)
	case c.of.number != nil:
		if c.number, err = strconv.ParseInt(value.text, 10, 32); err != nil || c.number < 0 {
			return misplacedf(value.at, "%s is a whole number", c.of.name)
		}
	case value.kind == lexWord && value.text == wordNone:
		c.none = true
	case c.of.ids:
		id, err := strconv.ParseUint(value.text, 10, 63)
		if err != nil {
			return misplacedf(value.at, "%s is a whole number from 0, or %s", c.of.name, wordNone)
		}
		c.text = strconv.FormatUint(id, 10)
	case c.of.name == fieldCategory && value.text == trace.Global:
		return misplacedf(value.at,
			"the category %s is called %s now, and is what many sessions share: write category %s %s", trace.Global,
			trace.Template, c.op, trace.Template)
	case c.of.values != nil && !slices.Contains(c.of.values, value.text):
		return misplacedf(value.at, "%s is %s", c.of.name,
			strings.Join(append(slices.Clone(c.of.values), wordNone), ", "))
	default:
		c.text = value.text
	}
	return nil
}

// mentions says whether a scope depends on a field.
func mentions(s scope, name string) bool {
	in := func(s scope) bool { return mentions(s, name) }
	switch s := s.(type) {
	case anyOf:
		return slices.ContainsFunc(s, in)
	case allOf:
		return slices.ContainsFunc(s, in)
	case *comparison:
		return s.of.name == name
	}
	return false
}

// onlySteady says that a scope is the steady state, whole.
func onlySteady(s scope) bool {
	c, ok := s.(*comparison)
	return ok && c.of.name == "state" && c.op == "=" && c.text == stateSteady
}
