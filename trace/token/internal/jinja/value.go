package jinja

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A List is a list of values, or another kind of a sequence.
type List struct {
	Items []any
	kind  sequence
}

// A sequence is what Python has in the place of a list.
type sequence uint8

const (
	aList  sequence = iota
	aTuple          // printed in parentheses, and not equal to a list
	aView           // what items, keys, values and range give: without items by number, a text or JSON
	once            // what filters such as map give: a view that is true, has no length and is empty once it was read
)

// NewList makes a list.
func NewList(items ...any) *List { return &List{Items: items} }

// newSequence makes a sequence of another kind.
func newSequence(kind sequence, items ...any) *List { return &List{items, kind} }

// noList says what to do about a view where Python wants a list.
const noList = "what a filter, or items, keys, values or range, gives is no list here: put | list behind it"

// A Dict maps strings, or integers, to values and keeps the order in which they were set.
type Dict struct {
	keys   []string // integers in their digits
	values map[string]any
	whole  bool // the keys are integers
}

// NewDict makes an empty Dict.
func NewDict() *Dict { return &Dict{values: map[string]any{}} }

// Set sets the value of a key.
func (d *Dict) Set(key string, value any) *Dict {
	if _, ok := d.values[key]; !ok {
		d.keys = append(d.keys, key)
	}
	d.values[key] = value
	return d
}

// Get gives the value of a key.
func (d *Dict) Get(key string) (any, bool) {
	v, ok := d.values[key]
	return v, ok
}

// find gives the value of a key, as a template has it.
func (d *Dict) find(key any) (any, bool) {
	s, ok := key.(string)
	if n, isWhole := key.(int64); isWhole && d.whole {
		return d.Get(strconv.FormatInt(n, 10))
	}
	v, found := d.Get(s)
	return v, found && ok && !d.whole
}

// key is the key at a place, as a template has it.
func (d *Dict) key(i int) any {
	if !d.whole {
		return d.keys[i]
	}
	n, _ := strconv.ParseInt(d.keys[i], 10, 64)
	return n
}

// Len is the number of keys.
func (d *Dict) Len() int { return len(d.keys) }

// Keys lists the keys in their order. The slice must not be changed.
func (d *Dict) Keys() []string { return d.keys }

// A bigNumber is an integer beyond int64, in its digits.
type bigNumber string

// A Func is a function that a template may call. Its error ends the rendering, and is wrapped in that of it.
type Func func(args []any) (any, error)

// A namespace is the one kind of value that templates change.
type namespace struct{ Dict }

// An undefined is the value of what is not there. It is false, empty and printed as nothing; to look into it is an
// error.
type undefined struct{}

// A builtin is a function or method of the language.
type builtin func(c *invocation) any

// An invocation is a call of a filter, test, function or method.
type invocation struct {
	r     *run
	line  int
	args  []any
	named map[string]any
	names []string // of named, in their order
}

func (c *invocation) fail(what string) { fail(c.line, what) }

// arg is the argument at a position or of a name, or undefined.
func (c *invocation) arg(i int, name string) any {
	if i < len(c.args) {
		return c.args[i]
	}
	if v, ok := c.named[name]; ok && name != "" {
		return v
	}
	return undefined{}
}

// text is a string argument, or what stands for it where there is none.
func (c *invocation) text(i int, name, missing string) string {
	switch v := c.arg(i, name).(type) {
	case string:
		return v
	case undefined, nil:
		return missing
	}
	c.fail("an argument is not a string")
	return ""
}

// number is an integer argument, or what stands for it where there is none.
func (c *invocation) number(i int, name string, missing int) int {
	switch v := c.arg(i, name).(type) {
	case int64:
		return clamp(v)
	case undefined, nil:
		return missing
	}
	c.fail("an argument is not an integer")
	return 0
}

// clamp keeps an int64 within what no length reaches.
func clamp(v int64) int { return int(max(min(v, 1<<31), -1<<31)) }

// truth is bool(v).
func truth(v any) bool {
	switch v := v.(type) {
	case nil, undefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case *List:
		return len(v.Items) > 0 || v.kind == once
	case *Dict:
		return v.Len() > 0
	}
	return true
}

// maxNesting bounds how deep a value may be nested where it is walked.
const maxNesting = 500

// equal is a == b. Numbers and booleans are compared by value.
func (r *run) equal(a, b any, line, depth int) bool {
	if depth > maxNesting {
		fail(line, "a value that is nested too deeply")
	}
	r.spend(line, 1)
	if x, ok := numeric(a); ok {
		y, ok := numeric(b)
		return ok && x == y
	}
	switch a := a.(type) {
	case nil:
		return b == nil
	case undefined:
		_, ok := b.(undefined)
		return ok
	case string:
		t, ok := b.(string)
		if !ok || len(a) != len(t) {
			return false
		}
		r.spend(line, len(a)/64)
		return a == t
	case bigNumber:
		return a == b
	case *List:
		t, ok := b.(*List)
		return ok && (a == t || a.kind == t.kind && slices.EqualFunc(a.Items, t.Items, func(x, y any) bool {
			return r.equal(x, y, line, depth+1)
		}))
	case *Dict:
		t, ok := b.(*Dict)
		if ok && a == t {
			return true
		}
		if !ok || a.Len() != t.Len() || a.whole != t.whole {
			return false
		}
		for _, k := range a.keys {
			v, ok := t.Get(k)
			if !ok || !r.equal(a.values[k], v, line, depth+1) {
				return false
			}
		}
		return true
	case *namespace:
		return a == b
	case *macro:
		return a == b
	}
	return false // functions
}

// whole is v, or the integer that Python takes a boolean for.
func whole(v any) any {
	if _, ok := v.(bool); !ok {
		return v
	}
	f, _ := numeric(v)
	return int64(f)
}

// numeric is the value of a number or of a boolean.
func numeric(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

// text is str(v). What it makes is counted as it grows: a value of few parts, each of them in many
// places, is a text without end.
func (r *run) text(line int, v any) string {
	switch v := v.(type) {
	case string:
		return v
	case undefined:
		return ""
	}
	var b strings.Builder
	r.repr(&b, v, line, 0)
	return b.String()
}

// repr writes repr(v).
func (r *run) repr(b *strings.Builder, v any, line, depth int) {
	if depth > maxNesting {
		fail(line, "a value that is nested too deeply")
	}
	from := b.Len()
	switch v := v.(type) {
	case nil:
		b.WriteString("None")
	case undefined:
		b.WriteString("Undefined")
	case string:
		b.WriteString(quote(v))
	case *List:
		r.grow(line, 2+2*len(v.Items))
		marks := "[]"
		switch {
		case v.kind >= aView:
			fail(line, noList)
		case v.kind == aTuple && len(v.Items) == 1:
			marks = "(,)"
		case v.kind == aTuple:
			marks = "()"
		}
		b.WriteString(marks[:1])
		for i, x := range v.Items {
			if i > 0 {
				b.WriteString(", ")
			}
			r.repr(b, x, line, depth+1)
		}
		b.WriteString(marks[1:])
		return
	case *Dict:
		r.grow(line, 2)
		b.WriteByte('{')
		for i, k := range v.keys {
			if i > 0 {
				b.WriteString(", ")
			}
			r.repr(b, v.key(i), line, depth+1)
			r.grow(line, 4)
			b.WriteString(": ")
			r.repr(b, v.values[k], line, depth+1)
		}
		b.WriteByte('}')
		return
	default:
		b.WriteString(scalar(v))
	}
	r.grow(line, b.Len()-from)
}

// scalar is str of what is neither a text nor made of other values.
func scalar(v any) string {
	switch v := v.(type) {
	case bool:
		if v {
			return "True"
		}
		return "False"
	case int64:
		return strconv.FormatInt(v, 10)
	case bigNumber:
		return string(v)
	case float64:
		return floatText(v)
	}
	fail(0, "a function or a namespace has no text")
	return ""
}

// length is len(v).
func (c *invocation) length(v any) int {
	switch v := v.(type) {
	case undefined:
		return 0
	case string:
		return runes(v)
	case *List:
		if v.kind == once {
			c.fail(noList)
		}
		return len(v.Items)
	case *Dict:
		return v.Len()
	}
	c.fail("a value that has no length")
	return 0
}

// iterate lists what a loop over v goes through.
func (r *run) iterate(v any, line int) []any {
	switch v := v.(type) {
	case undefined:
		return nil
	case *List:
		items := v.Items
		if v.kind == once {
			v.Items = nil
		}
		return items
	case *Dict:
		r.grow(line, 16*v.Len())
		out := make([]any, v.Len())
		for i := range out {
			out[i] = v.key(i)
		}
		return out
	case string:
		r.grow(line, 17*len(v))
		var out []any
		for len(v) > 0 {
			_, n := utf8.DecodeRuneInString(v)
			out = append(out, v[:n])
			v = v[n:]
		}
		return out
	}
	fail(line, "a value that cannot be looped over")
	return nil
}
