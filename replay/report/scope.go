package report

import (
	"slices"
	"strconv"
	"strings"

	"reprise/replay/result"
	"reprise/trace"
)

// A scope says which requests a clause is about.
type scope interface {
	holds(r *result.Result, run *result.Run) bool
	String() string // as parseScope reads it
}

// anyOf and allOf have two parts or more.
type (
	anyOf []scope
	allOf []scope
)

func (a anyOf) holds(r *result.Result, run *result.Run) bool {
	return slices.ContainsFunc(a, func(s scope) bool { return s.holds(r, run) })
}

func (a allOf) holds(r *result.Result, run *result.Run) bool {
	return !slices.ContainsFunc(a, func(s scope) bool { return !s.holds(r, run) })
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
	text   func(*result.Result, *result.Run) string
	number func(*result.Result) int32
	values []string // the only ones; nil is any
}

// Lengths are those that the server counted, of a request that succeeded, else those
// that the workload asked for: what a request asked decides where its failure
// counts, not how far its answer came.
var scopeFields = []field{
	{name: "class", text: func(r *result.Result, _ *result.Run) string { return r.Class }},
	{name: "category", text: func(r *result.Result, _ *result.Run) string { return r.Category }, values: trace.Categories()},
	{name: "api", text: func(r *result.Result, _ *result.Run) string { return r.API },
		values: []string{result.APIChat, result.APICompletions, result.APIResponses, result.APIEmbeddings}},
	{name: "endpoint", text: endpointOf},
	{name: "session", text: sessionOf, values: []string{}},
	{name: "input_tokens", number: func(r *result.Result) int32 { return countedOr(r, r.Input, r.WantInput) }},
	{name: "output_tokens", number: func(r *result.Result) int32 { return countedOr(r, r.Output, r.WantOutput) }},
}

func endpointOf(r *result.Result, run *result.Run) string {
	if r.Endpoint == nil || *r.Endpoint < 0 || int(*r.Endpoint) >= len(run.Endpoints) {
		return ""
	}
	return run.Endpoints[*r.Endpoint]
}

func sessionOf(r *result.Result, _ *result.Run) string {
	if r.Session == nil {
		return ""
	}
	return strconv.FormatInt(*r.Session, 10)
}

func countedOr(r *result.Result, counted *int32, wanted int32) int32 {
	if end, _ := OutcomeOf(r); end == Succeeded && counted != nil {
		return *counted
	}
	return wanted
}

func (c *comparison) holds(r *result.Result, run *result.Run) bool {
	if c.of.number == nil {
		return (c.of.text(r, run) == c.text) == (c.op == "=") // none is the empty text
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
	case !plainWord(value):
		quote := `"`
		if strings.Contains(value, quote) {
			quote = "'" // both cannot be in a text that was quoted
		}
		value = quote + value + quote
	}
	return c.of.name + " " + c.op + " " + value
}

// plainWord tells whether a text can stand without quotes.
func plainWord(s string) bool {
	return s != "" && s != wordNone && !joins(s) && !strings.ContainsFunc(s, func(r rune) bool { return !inWord(r) })
}
