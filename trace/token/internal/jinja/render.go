package jinja

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Limits bound what one rendering may cost. Zero is a bound too: nothing.
type Limits struct {
	Steps int // parts of the tree that are looked at
	Bytes int // of all texts and lists that are made, the result among them
	Depth int // macros within macros
}

// A Template is a template that was read. It is immutable and safe for concurrent use.
type Template struct{ body []node }

// A fault is an error within this package, on its way to the caller.
type fault struct {
	line int
	err  error
}

// fail gives up. The words must not have anything of a value in them.
func fail(line int, what string) { panic(fault{line, errors.New(what)}) }

// caught makes an error of a fault.
func caught(err *error) {
	switch f := recover().(type) {
	case nil:
	case fault:
		*err = f.err
		if f.line > 0 {
			*err = fmt.Errorf("line %d of the template: %w", f.line, f.err)
		}
	default:
		panic(f)
	}
}

// Compile reads a template.
func Compile(src string) (t *Template, err error) {
	defer caught(&err)
	p := &parser{in: lex(src)}
	body := p.body()
	if p.peek().kind != tokEnd {
		p.fail("a tag that closes a block that is not open")
	}
	return &Template{body}, nil
}

// Render renders a template with the names in vars.
func (t *Template) Render(vars map[string]any, limits Limits) (text string, err error) {
	defer caught(&err)
	r := &run{steps: limits.Steps, bytes: limits.Bytes, depth: limits.Depth}
	global := &scope{vars: vars, up: &scope{vars: globals}}
	var out strings.Builder
	r.exec(t.body, &scope{up: global}, &out)
	return out.String(), nil
}

// A run is one rendering, with what is left of its limits.
type run struct{ steps, bytes, depth int }

func (r *run) spend(line, steps int) {
	if r.steps -= steps; r.steps < 0 {
		fail(line, "it takes more steps than a template may")
	}
}

func (r *run) grow(line, bytes int) {
	if r.bytes -= bytes; r.bytes < 0 {
		fail(line, "it makes more text than a template may")
	}
}

// eval evaluates an expression; each takes a step.
func (r *run) eval(x expr, s *scope) any {
	if r.steps--; r.steps < 0 {
		fail(0, "it takes more steps than a template may")
	}
	return x.eval(r, s)
}

// A node is a statement of the tree, or text.
type node interface {
	exec(r *run, s *scope, out *strings.Builder) flow
}

// flow says how a statement ended.
type flow uint8

const (
	onward  flow = iota
	broken       // by break
	resumed      // by continue
)

func (r *run) exec(body []node, s *scope, out *strings.Builder) flow {
	for _, n := range body {
		if r.steps--; r.steps < 0 {
			fail(0, "it takes more steps than a template may")
		}
		if f := n.exec(r, s, out); f != onward {
			return f
		}
	}
	return onward
}

type (
	data   struct{ text string }
	output struct {
		x    expr
		line int
	}
	branch struct {
		when []expr
		then [][]node
		no   []node
	}
	loop struct {
		names   []string
		over    expr
		when    expr // may be nil
		body    []node
		nothing []node
		line    int
	}
	assign struct {
		names []string // of variables
		space string   // or of a namespace, and then its one attribute
		x     expr     // nil for the text of body
		body  []node
		line  int
	}
	define struct {
		m *macro
	}
	jump      struct{ to flow }
	callBlock struct {
		call *callOf
		body []node // that the macro renders by caller()
		line int
	}
)

func (n data) exec(r *run, _ *scope, out *strings.Builder) flow {
	r.grow(0, len(n.text))
	out.WriteString(n.text)
	return onward
}

func (n *output) exec(r *run, s *scope, out *strings.Builder) flow {
	text := r.text(n.line, r.eval(n.x, s))
	r.grow(n.line, len(text))
	out.WriteString(text)
	return onward
}

func (n *branch) exec(r *run, s *scope, out *strings.Builder) flow {
	for i, when := range n.when {
		if truth(r.eval(when, s)) {
			return r.exec(n.then[i], s, out)
		}
	}
	return r.exec(n.no, s, out)
}

func (n jump) exec(*run, *scope, *strings.Builder) flow { return n.to }

func (n *define) exec(_ *run, s *scope, _ *strings.Builder) flow {
	m := *n.m
	m.in = s
	s.set(m.name, &m)
	return onward
}

func (n *callBlock) exec(r *run, s *scope, out *strings.Builder) flow {
	m, ok := r.eval(n.call.fn, s).(*macro)
	if !ok {
		fail(n.line, "a call statement of something that is no macro")
	}
	c := n.call.args.eval(r, s, n.line)
	text := m.call(c, &macro{name: "caller", body: n.body, in: s}).(string)
	r.grow(n.line, len(text))
	out.WriteString(text)
	return onward
}

func (n *assign) exec(r *run, s *scope, _ *strings.Builder) flow {
	var v any
	if n.x != nil {
		v = r.eval(n.x, s)
	} else {
		var text strings.Builder
		r.exec(n.body, s, &text)
		v = text.String()
	}
	if n.space != "" {
		space, ok := s.get(n.space).(*namespace)
		if !ok {
			fail(n.line, "an attribute can be set of a namespace only")
		}
		space.Set(n.names[0], v)
		return onward
	}
	r.bind(s, n.names, v, n.line)
	return onward
}

// bind sets a name, or several to the items of a list.
func (r *run) bind(s *scope, names []string, v any, line int) {
	if len(names) == 1 {
		s.set(names[0], v)
		return
	}
	items := r.iterate(v, line)
	if len(items) != len(names) {
		fail(line, "a list that has more or fewer items than there are names for them")
	}
	for i, name := range names {
		s.set(name, items[i])
	}
}

func (n *loop) exec(r *run, s *scope, out *strings.Builder) flow {
	items := r.iterate(r.eval(n.over, s), n.line)
	if n.when != nil {
		var kept []any
		for _, v := range items {
			inner := &scope{up: s}
			r.bind(inner, n.names, v, n.line)
			if truth(r.eval(n.when, inner)) {
				kept = append(kept, v)
			}
		}
		r.grow(n.line, 16*len(kept))
		items = kept
	}
	if len(items) == 0 {
		return r.exec(n.nothing, &scope{up: s}, out)
	}
	state, whole := &loopState{items: items}, false
	for i, v := range items {
		r.spend(n.line, 1)
		state.at = i
		inner := &scope{vars: make(map[string]any, 4), up: s}
		inner.set("loop", state)
		r.bind(inner, n.names, v, n.line)
		ended := r.exec(n.body, inner, out)
		whole = whole || ended == onward
		if ended == broken {
			break
		}
	}
	if !whole { // Jinja takes a loop that never came to the end of its statements for one without items
		return r.exec(n.nothing, &scope{up: s}, out)
	}
	return onward
}

// A loopState is the variable loop.
type loopState struct {
	items []any
	at    int
}

func (l *loopState) attribute(name string) any {
	n := len(l.items)
	number := func(i int) any { return int64(i) }
	switch name {
	case "index":
		return number(l.at + 1)
	case "index0":
		return number(l.at)
	case "revindex":
		return number(n - l.at)
	case "revindex0":
		return number(n - l.at - 1)
	case "length":
		return number(n)
	case "first":
		return l.at == 0
	case "last":
		return l.at == n-1
	case "previtem":
		if l.at > 0 {
			return l.items[l.at-1]
		}
	case "nextitem":
		if l.at < n-1 {
			return l.items[l.at+1]
		}
	case "cycle":
		at := l.at
		return builtin(func(c *invocation) any {
			if len(c.args) == 0 {
				c.fail("cycle without values")
			}
			return c.args[at%len(c.args)]
		})
	}
	return undefined{}
}

// A macro is a function that the template defines.
type macro struct {
	name     string
	names    []string
	defaults []expr // of the last names
	body     []node
	in       *scope
}

// call renders a macro; caller is the one of a call statement, or nil.
func (m *macro) call(c *invocation, caller *macro) any {
	r := c.r
	if r.depth--; r.depth < 0 {
		c.fail("macros that call each other too deeply")
	}
	defer func() { r.depth++ }()
	if len(c.args) > len(m.names) {
		c.fail("a macro with more arguments than it takes")
	}
	for _, name := range c.names {
		if !slices.Contains(m.names, name) {
			c.fail("a macro that takes no argument " + name)
		}
	}
	inner := &scope{vars: make(map[string]any, len(m.names)), up: m.in}
	if caller != nil {
		inner.set("caller", caller)
	}
	for i, name := range m.names {
		v := c.arg(i, name)
		_, missing := v.(undefined)
		if d := i - len(m.names) + len(m.defaults); missing && d >= 0 && i >= len(c.args) {
			v = r.eval(m.defaults[d], inner)
		}
		inner.set(name, v)
	}
	var out strings.Builder
	r.exec(m.body, inner, &out)
	return out.String()
}
