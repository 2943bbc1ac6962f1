package jinja

import (
	"strconv"
)

// Bounds on how deep statements and expressions may be nested, and on operators in a row, which nest to the left.
const (
	maxDepth = 200
	maxChain = 1000
)

// A parser makes a tree of lexemes.
type parser struct {
	in    []lexeme
	at    int
	depth int
	loops int // that are open
}

func (p *parser) peek() lexeme { return p.in[p.at] }

func (p *parser) next() lexeme {
	t := p.in[p.at]
	if t.kind != tokEnd {
		p.at++
	}
	return t
}

func (p *parser) fail(what string) { fail(p.peek().line, what) }

// deeper bounds the recursion; the caller must take it back.
func (p *parser) deeper() {
	if p.depth++; p.depth > maxDepth {
		p.fail("a template that is nested too deeply")
	}
}

// link bounds a chain of operators by the number of them before.
func (p *parser) link(n int) {
	if n > maxChain {
		p.fail("an expression with too many operators in a row")
	}
}

func (p *parser) is(kind tokenKind, text string) bool {
	t := p.peek()
	return t.kind == kind && t.text == text
}

// accept consumes a lexeme if it is the next one.
func (p *parser) accept(kind tokenKind, text string) bool {
	ok := p.is(kind, text)
	if ok {
		p.at++
	}
	return ok
}

func (p *parser) punct(text string) bool { return p.accept(tokPunct, text) }
func (p *parser) word(text string) bool  { return p.accept(tokName, text) }

func (p *parser) expect(kind tokenKind, text string) {
	if !p.accept(kind, text) {
		p.fail("want " + text + " here")
	}
}

func (p *parser) name() string {
	if p.peek().kind != tokName {
		p.fail("want a name here")
	}
	return p.next().text
}

// body parses statements up to a tag that closes or divides the open block. Of that tag it consumes only the opening
// mark.
func (p *parser) body() (nodes []node) {
	p.deeper()
	defer func() { p.depth-- }()
	for {
		switch t := p.next(); t.kind {
		case tokEnd:
			return nodes
		case tokData:
			nodes = append(nodes, data{t.text})
		case tokOpen:
			if t.text == "{{" {
				nodes = append(nodes, &output{p.tuple(p.expression), t.line})
				p.expect(tokClose, "}}")
				continue
			}
			if closing[p.peek().text] {
				return nodes
			}
			nodes = append(nodes, p.statement()...)
		}
	}
}

// closing are the names that close or part what is open.
var closing = map[string]bool{"elif": true, "else": true, "endif": true, "endfor": true, "endmacro": true,
	"endset": true, "endgeneration": true, "endcall": true}

// end consumes a closing tag whose opening mark was read.
func (p *parser) end(name string) {
	if !p.word(name) {
		p.fail("want " + name + " here")
	}
	p.expect(tokClose, "%}")
}

func (p *parser) statement() []node {
	line := p.peek().line
	switch name := p.name(); name {
	case "if":
		return []node{p.branch()}
	case "for":
		return []node{p.loop(line)}
	case "set":
		return []node{p.assign(line)}
	case "macro":
		return []node{p.macro()}
	case "call":
		return []node{p.called(line)}
	case "generation": // transformers marks what the model said
		p.expect(tokClose, "%}")
		body := p.body()
		p.end("endgeneration")
		return body
	case "break", "continue":
		if p.loops == 0 {
			p.fail("a jump outside a loop")
		}
		p.expect(tokClose, "%}")
		if name == "break" {
			return []node{jump{broken}}
		}
		return []node{jump{resumed}}
	}
	fail(line, "the statement "+p.in[p.at-1].text+" is not supported: if, for, set, macro, call, break, continue, "+
		"generation and raw are")
	return nil
}

// called parses a call of a macro that may render the statements up to endcall, by calling caller.
func (p *parser) called(line int) node {
	if p.is(tokPunct, "(") {
		p.fail("a call statement with arguments of its own is not supported")
	}
	x, ok := p.expression().(*callOf)
	if !ok {
		p.fail("want a call here")
	}
	return &callBlock{x, p.macroBody("endcall"), line}
}

func (p *parser) branch() node {
	n := new(branch)
	for {
		n.when = append(n.when, p.expression())
		p.expect(tokClose, "%}")
		n.then = append(n.then, p.body())
		if p.word("elif") {
			continue
		}
		if p.word("else") {
			p.expect(tokClose, "%}")
			n.no = p.body()
		}
		p.end("endif")
		return n
	}
}

// targets parses names with commas between them.
func (p *parser) targets() (names []string) {
	parens := p.punct("(")
	for {
		names = append(names, p.name())
		if !p.punct(",") {
			break
		}
	}
	if parens {
		p.expect(tokPunct, ")")
	}
	return names
}

func (p *parser) loop(line int) node {
	n := &loop{line: line, names: p.targets()}
	if !p.word("in") {
		p.fail("want in here")
	}
	n.over = p.tuple(p.or)
	if p.word("if") {
		n.when = p.expression()
	}
	if p.is(tokName, "recursive") {
		p.fail("a recursive loop is not supported")
	}
	p.expect(tokClose, "%}")
	p.loops++
	n.body = p.body()
	p.loops--
	if p.word("else") {
		p.expect(tokClose, "%}")
		n.nothing = p.body()
	}
	p.end("endfor")
	return n
}

func (p *parser) assign(line int) node {
	n := &assign{line: line, names: p.targets()}
	if len(n.names) == 1 && p.punct(".") {
		n.space, n.names[0] = n.names[0], p.name()
	}
	if p.punct("=") {
		n.x = p.tuple(p.expression)
		p.expect(tokClose, "%}")
		return n
	}
	p.expect(tokClose, "%}")
	n.body = p.body()
	p.end("endset")
	return n
}

func (p *parser) macro() node {
	m := &macro{name: p.name()}
	p.expect(tokPunct, "(")
	for !p.punct(")") {
		m.names = append(m.names, p.name())
		if p.punct("=") {
			m.defaults = append(m.defaults, p.expression())
		} else if len(m.defaults) > 0 {
			p.fail("an argument without a default behind one with it")
		}
		if !p.is(tokPunct, ")") {
			p.expect(tokPunct, ",")
		}
	}
	m.body = p.macroBody("endmacro")
	return &define{m}
}

// macroBody parses the statements of a macro up to its end.
func (p *parser) macroBody(end string) []node {
	p.expect(tokClose, "%}")
	loops := p.loops
	p.loops = 0
	body := p.body()
	p.loops = loops
	p.end(end)
	return body
}

// tuple parses an expression, or several with commas between them.
func (p *parser) tuple(one func() expr) expr {
	first := one()
	if !p.is(tokPunct, ",") {
		return first
	}
	list := &listOf{[]expr{first}, aTuple}
	for p.punct(",") {
		if p.peek().kind == tokClose || p.is(tokPunct, ")") {
			break
		}
		list.items = append(list.items, one())
	}
	return list
}

func parseInt(s string, line int) any {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return bigNumber(s)
	}
	return n
}

func parseFloat(s string, line int) any {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		fail(line, "a number that is too large")
	}
	return f
}
