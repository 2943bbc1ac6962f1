package jinja

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
)

// An expr is an expression of the tree.
type expr interface {
	eval(r *run, s *scope) any
}

// A scope holds names. Loops and macros have their own.
type scope struct {
	vars map[string]any
	up   *scope
}

func (s *scope) get(name string) any {
	for ; s != nil; s = s.up {
		if v, ok := s.vars[name]; ok {
			return v
		}
	}
	return undefined{}
}

func (s *scope) set(name string, v any) {
	if s.vars == nil {
		s.vars = make(map[string]any)
	}
	s.vars[name] = v
}

type (
	literal struct{ v any }
	nameOf  struct{ name string }
	attrOf  struct {
		x    expr
		name string
		line int
	}
	itemOf struct {
		x, key expr
		line   int
	}
	sliceOf struct {
		x            expr
		lo, hi, step expr // may be nil
		line         int
	}
	callOf struct {
		fn   expr
		args arguments
		line int
	}
	filterOf struct {
		x    expr
		name string
		args arguments
		line int
	}
	testOf struct {
		x    expr
		name string
		args arguments
		not  bool
		line int
	}
	notOf    struct{ x expr }
	negative struct {
		x    expr
		line int
	}
	logic struct {
		or          bool
		left, right expr
	}
	arithmetic struct {
		op          string
		left, right expr
		line        int
	}
	comparison struct {
		first expr
		ops   []string
		rest  []expr
		line  int
	}
	choice struct{ yes, when, no expr } // no may be nil
	listOf struct {
		items []expr
		kind  sequence
	}
	dictOf struct {
		keys, values []expr
		line         int
	}
)

// arguments are those of a call as written.
type arguments struct {
	values []expr
	names  []string
	named  []expr
	many   expr // a list whose items follow the values, after a *; may be nil
}

func (a arguments) eval(r *run, s *scope, line int, first ...any) *invocation {
	c := &invocation{r: r, line: line, args: first}
	for _, x := range a.values {
		c.args = append(c.args, r.eval(x, s))
	}
	if a.many != nil {
		c.args = append(c.args, r.iterate(r.eval(a.many, s), line)...)
	}
	c.names = a.names
	for i, x := range a.named {
		if c.named == nil {
			c.named = make(map[string]any)
		}
		c.named[a.names[i]] = r.eval(x, s)
	}
	return c
}

func (x literal) eval(*run, *scope) any     { return x.v }
func (x nameOf) eval(_ *run, s *scope) any  { return s.get(x.name) }
func (x notOf) eval(r *run, s *scope) any   { return !truth(r.eval(x.x, s)) }
func (x *attrOf) eval(r *run, s *scope) any { return r.attribute(r.eval(x.x, s), x.name, x.line) }

func (x *itemOf) eval(r *run, s *scope) any {
	return r.item(r.eval(x.x, s), r.eval(x.key, s), x.line)
}

// attribute is v.name: a method, or else an item.
func (r *run) attribute(v any, name string, line int) any {
	switch v := v.(type) {
	case undefined:
		fail(line, "an attribute of something that is undefined")
	case *namespace:
		if found, ok := v.Get(name); ok {
			return found
		}
		return undefined{}
	case *loopState:
		return v.attribute(name)
	}
	if m := methodOf(v, name); m != nil {
		return m
	}
	if d, ok := v.(*Dict); ok {
		if found, ok := d.find(name); ok {
			return found
		}
	}
	return undefined{}
}

// item is v[key]: an item, or else an attribute.
func (r *run) item(v, key any, line int) any {
	switch v := v.(type) {
	case undefined:
		fail(line, "an item of something that is undefined")
	case *Dict:
		if found, ok := v.find(key); ok {
			return found
		}
	case *List:
		if i, ok := key.(int64); ok {
			if v.kind >= aView {
				fail(line, noList)
			}
			if at := clamp(i); at < 0 && -at <= len(v.Items) {
				return v.Items[len(v.Items)+at]
			} else if at >= 0 && at < len(v.Items) {
				return v.Items[at]
			}
		}
	case string:
		if i, ok := key.(int64); ok {
			n, at := runes(v), clamp(i)
			if at < 0 {
				at += n
			}
			if at >= 0 && at < n {
				return cutRunes(v, at, at+1)
			}
		}
	}
	if name, ok := key.(string); ok {
		return r.attribute(v, name, line)
	}
	return undefined{}
}

func (x *sliceOf) eval(r *run, s *scope) any {
	v := r.eval(x.x, s)
	n := 0
	switch v := v.(type) {
	case string:
		n = runes(v)
	case *List:
		if v.kind >= aView {
			fail(x.line, noList)
		}
		n = len(v.Items)
	default:
		fail(x.line, "a slice of something that is neither a list nor a string")
	}
	bound := func(e expr, missing int) int {
		if e == nil {
			return missing
		}
		switch b := r.eval(e, s).(type) {
		case int64:
			return clamp(b)
		case nil:
			return missing
		}
		fail(x.line, "a bound of a slice is not an integer")
		return 0
	}
	step := bound(x.step, 1)
	if step == 0 {
		fail(x.line, "a slice with the step 0")
	}
	lo, hi := 0, n
	if step < 0 {
		lo, hi = n-1, -1-n
	}
	lo, hi = within(bound(x.lo, lo), n, step), within(bound(x.hi, hi), n, step)
	if text, ok := v.(string); ok && step == 1 {
		r.grow(x.line, hi-lo)
		return cutRunes(text, lo, max(lo, hi))
	}
	items := r.iterate(v, x.line)
	if step == 1 {
		return newSequence(v.(*List).kind, items[lo:max(lo, hi)]...)
	}
	var out []any
	for i := lo; step > 0 && i < hi || step < 0 && i > hi; i += step {
		out = append(out, items[i])
	}
	r.grow(x.line, 16*len(out))
	if _, ok := v.(string); ok {
		var b strings.Builder
		for _, c := range out {
			b.WriteString(c.(string))
		}
		return b.String()
	}
	return newSequence(v.(*List).kind, out...)
}

// within is a bound of a slice of n items, as Python moves it into the range.
func within(i, n, step int) int {
	if i < 0 {
		i += n
	}
	if step < 0 {
		return min(max(i, -1), n-1)
	}
	return min(max(i, 0), n)
}

func (x *callOf) eval(r *run, s *scope) any {
	switch f := r.eval(x.fn, s).(type) {
	case builtin:
		return f(x.args.eval(r, s, x.line))
	case *macro:
		return f.call(x.args.eval(r, s, x.line), nil)
	case Func:
		v, err := f(x.args.eval(r, s, x.line).args)
		if err != nil {
			panic(fault{x.line, err})
		}
		return v
	case undefined:
		switch of := x.fn.(type) {
		case *attrOf:
			fail(x.line, "a call of the method "+of.name+", which is not supported here")
		case nameOf:
			fail(x.line, "a call of "+of.name+", which is not defined")
		}
		fail(x.line, "a call of something that is undefined")
	}
	fail(x.line, "a call of something that is no function")
	return nil
}

func (x *filterOf) eval(r *run, s *scope) any {
	return filterNamed(x.name, x.line)(x.args.eval(r, s, x.line, r.eval(x.x, s)))
}

func (x *testOf) eval(r *run, s *scope) any {
	return truth(testNamed(x.name, x.line)(x.args.eval(r, s, x.line, r.eval(x.x, s)))) != x.not
}

func (x *negative) eval(r *run, s *scope) any {
	switch v := whole(r.eval(x.x, s)).(type) {
	case int64:
		return -v
	case float64:
		return -v
	}
	fail(x.line, "a minus before something that is no number")
	return nil
}

func (x *logic) eval(r *run, s *scope) any {
	left := r.eval(x.left, s)
	if truth(left) == x.or {
		return left
	}
	return r.eval(x.right, s)
}

func (x *choice) eval(r *run, s *scope) any {
	switch {
	case truth(r.eval(x.when, s)):
		return r.eval(x.yes, s)
	case x.no == nil:
		return undefined{}
	}
	return r.eval(x.no, s)
}

func (x *listOf) eval(r *run, s *scope) any {
	items := make([]any, len(x.items))
	for i, e := range x.items {
		items[i] = r.eval(e, s)
	}
	return newSequence(x.kind, items...)
}

func (x *dictOf) eval(r *run, s *scope) any {
	d := NewDict()
	for i, e := range x.keys {
		key := r.eval(e, s)
		name, isText := key.(string)
		n, isWhole := key.(int64)
		if isWhole {
			name = strconv.FormatInt(n, 10)
		}
		if !isText && !isWhole || i > 0 && d.whole != isWhole {
			fail(x.line, "keys that are neither all strings nor all integers")
		}
		d.whole = isWhole
		d.Set(name, r.eval(x.values[i], s))
	}
	return d
}

func (x *arithmetic) eval(r *run, s *scope) any {
	left, right := r.eval(x.left, s), r.eval(x.right, s)
	if x.op == "~" {
		return r.join(x.line, r.text(x.line, left), r.text(x.line, right))
	}
	left, right = whole(left), whole(right)
	switch a := left.(type) {
	case string:
		switch b := right.(type) {
		case string:
			if x.op == "+" {
				return r.join(x.line, a, b)
			}
		case int64:
			if x.op == "*" {
				r.grow(x.line, len(a)*max(0, clamp(b)))
				return strings.Repeat(a, max(0, clamp(b)))
			}
		}
	case *List:
		if b, ok := right.(*List); ok && x.op == "+" && a.kind == b.kind && a.kind < aView {
			r.grow(x.line, 16*(len(a.Items)+len(b.Items)))
			return newSequence(a.kind, slices.Concat(a.Items, b.Items)...)
		}
	case int64:
		if b, ok := right.(int64); ok && x.op != "/" && (x.op != "**" || b >= 0) {
			return x.integers(a, b)
		}
	}
	a, ok := numeric(left)
	b, ok2 := numeric(right)
	if !ok || !ok2 {
		fail(x.line, "an operator between values that it does not take")
	}
	return x.floats(a, b)
}

func (r *run) join(line int, a, b string) string {
	r.grow(line, len(a)+len(b))
	return a + b
}

func (x *arithmetic) integers(a, b int64) any {
	if x.op != "//" && x.op != "%" && math.Abs(x.floats(float64(a), float64(b))) >= 1<<63 {
		fail(x.line, "an integer beyond 64 bits")
	}
	switch x.op {
	case "+":
		return a + b
	case "-":
		return a - b
	case "*":
		return a * b
	case "**":
		n := int64(1)
		for ; b > 0; b, a = b/2, a*a {
			if b%2 == 1 {
				n *= a
			}
		}
		return n
	}
	if b == 0 || b == -1 && a == math.MinInt64 {
		fail(x.line, "a division by zero")
	}
	q, m := a/b, a%b
	if m != 0 && (m < 0) != (b < 0) { // Python rounds down
		q, m = q-1, m+b
	}
	if x.op == "//" {
		return q
	}
	return m
}

func (x *arithmetic) floats(a, b float64) float64 {
	switch x.op {
	case "+":
		return a + b
	case "-":
		return a - b
	case "*":
		return a * b
	case "**":
		return math.Pow(a, b)
	}
	if b == 0 {
		fail(x.line, "a division by zero")
	}
	switch x.op {
	case "/":
		return a / b
	case "//":
		return math.Floor(a / b)
	}
	return a - b*math.Floor(a/b)
}

func (x *comparison) eval(r *run, s *scope) any {
	left := r.eval(x.first, s)
	for i, op := range x.ops {
		right := r.eval(x.rest[i], s)
		if !r.compare(op, left, right, x.line) {
			return false
		}
		left = right
	}
	return true
}

func (r *run) compare(op string, a, b any, line int) bool {
	switch op {
	case "==":
		return r.equal(a, b, line, 0)
	case "!=":
		return !r.equal(a, b, line, 0)
	case "in":
		return r.contains(b, a, line)
	case "not in":
		return !r.contains(b, a, line)
	}
	order := 0
	x, ok := numeric(a)
	y, ok2 := numeric(b)
	s, isText := a.(string)
	t, isText2 := b.(string)
	switch {
	case ok && ok2:
		order = cmp.Compare(x, y)
	case isText && isText2:
		order = strings.Compare(s, t)
	default:
		fail(line, "a comparison between values that have no order")
	}
	switch op {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	}
	return order >= 0
}

// contains is x in v.
func (r *run) contains(v, x any, line int) bool {
	switch v := v.(type) {
	case undefined:
		return false
	case string:
		t, ok := x.(string)
		if !ok {
			fail(line, "a search in a string for something else")
		}
		r.spend(line, len(v)/64)
		return strings.Contains(v, t)
	case *Dict:
		_, found := v.find(x)
		return found
	case *List:
		r.spend(line, len(v.Items)/4)
		return slices.ContainsFunc(v.Items, func(y any) bool { return r.equal(x, y, line, 0) })
	}
	fail(line, "a search in something that is neither a list nor a string")
	return false
}
