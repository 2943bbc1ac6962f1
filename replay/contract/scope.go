package contract

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
)

// A scope says which requests a clause is about.
type scope interface {
	holds(r *result.Result, in *report.Circumstances) bool
	String() string // as parseScope reads it
}

// anyOf and allOf have two parts or more.
type (
	anyOf []scope
	allOf []scope
)

func (a anyOf) holds(r *result.Result, in *report.Circumstances) bool {
	return slices.ContainsFunc(a, func(s scope) bool { return s.holds(r, in) })
}

func (a allOf) holds(r *result.Result, in *report.Circumstances) bool {
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

// A comparison holds a column against a value: a text, a number, or none.
type comparison struct {
	of     *report.Column
	op     string
	text   string
	number int64
	none   bool
}

func (c *comparison) holds(r *result.Result, in *report.Circumstances) bool {
	if c.of.Number == nil {
		return (c.of.Text(r, in) == c.text) == (c.op == "=") // none is the empty text
	}
	n, ok := c.of.Number(r)
	switch {
	case c.none:
		return ok == (c.op == "!=")
	case !ok:
		return c.op == "!="
	case c.op == "=":
		return n == c.number
	case c.op == "!=":
		return n != c.number
	case c.op == "<":
		return n < c.number
	case c.op == "<=":
		return n <= c.number
	case c.op == ">":
		return n > c.number
	}
	return n >= c.number
}

func (c *comparison) String() string {
	value := c.text
	switch {
	case c.none:
		value = wordNone
	case c.of.Number != nil:
		value = strconv.FormatInt(c.number, 10)
	case value == "" || value == wordNone || joins(value) ||
		strings.ContainsFunc(value, func(r rune) bool { return !inWord(r) }):
		quote := `"`
		if strings.Contains(value, quote) {
			quote = "'" // both cannot be in a text that was quoted
		}
		value = quote + value + quote
	}
	return c.of.Name + " " + c.op + " " + value
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
	of, err := report.FindColumn(name.text)
	if err != nil || name.kind != lexWord {
		return nil, misplacedf(name.at, "%v",
			cmp.Or(err, errors.New("want one of "+strings.Join(report.ColumnNames(), ", "))))
	}
	c := &comparison{of: of}
	op := p.take()
	switch {
	case op.kind != lexOperator:
		return nil, misplacedf(op.at, "want =, !=, <, <=, > or >= after %s", name.text)
	case of.Number == nil && op.text != "=" && op.text != "!=":
		return nil, misplacedf(op.at, "%s is a text: want = or !=", name.text)
	case of.IDs && op.text != "=" && op.text != "!=":
		return nil, misplacedf(op.at, "%s has no order: want = or !=", name.text)
	}
	c.op = op.text
	return c, c.take(p.take())
}

// take sets the value.
func (c *comparison) take(value lexeme) error {
	switch {
	case value.kind != lexWord && value.kind != lexQuoted || value.kind == lexWord && joins(value.text):
		return misplacedf(value.at, "want a value after %s", c.op)
	case value.kind == lexWord && value.text == wordNone && !c.of.Always && (c.op == "=" || c.op == "!="):
		c.none = true
	case c.of.Number != nil:
		bits := 63
		if c.of.Always {
			bits = 31
		}
		n, err := strconv.ParseUint(value.text, 10, bits)
		switch {
		case err != nil && c.of.Always:
			return misplacedf(value.at, "%s is a whole number", c.of.Name)
		case err != nil:
			return misplacedf(value.at, "%s is a whole number from 0, or %s", c.of.Name, wordNone)
		}
		c.number = int64(n)
	case c.of.Name == report.ColumnCategory && value.text == trace.Global:
		return misplacedf(value.at,
			"the category %s is called %s now, and is what many sessions share: write category %s %s", trace.Global,
			trace.Template, c.op, trace.Template)
	case c.of.Values != nil && !slices.Contains(c.of.Values, value.text):
		return misplacedf(value.at, "%s is %s", c.of.Name,
			strings.Join(append(slices.Clone(c.of.Values), wordNone), ", "))
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
		return s.of.Name == name
	}
	return false
}

// onlySteady says that a scope is the steady state, whole.
func onlySteady(s scope) bool {
	c, ok := s.(*comparison)
	return ok && c.of.Name == "state" && c.op == "=" && c.text == report.StateSteady
}
