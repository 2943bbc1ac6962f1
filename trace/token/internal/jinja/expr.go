package jinja

// expression parses with the precedence of Jinja: a choice, or, and, not, comparisons, + -, ~, * / // %, **, and what
// follows a value: attributes, items, calls, filters and tests.
func (p *parser) expression() expr {
	p.deeper()
	defer func() { p.depth-- }()
	x := p.or()
	for n := 0; p.word("if"); n++ {
		p.link(n)
		c := &choice{yes: x, when: p.or()}
		if p.word("else") {
			c.no = p.expression()
		}
		x = c
	}
	return x
}

func (p *parser) or() expr {
	x := p.and()
	for n := 0; p.word("or"); n++ {
		p.link(n)
		x = &logic{true, x, p.and()}
	}
	return x
}

func (p *parser) and() expr {
	x := p.not()
	for n := 0; p.word("and"); n++ {
		p.link(n)
		x = &logic{false, x, p.not()}
	}
	return x
}

func (p *parser) not() expr {
	if !p.word("not") {
		return p.comparison()
	}
	p.deeper()
	defer func() { p.depth-- }()
	return notOf{p.not()}
}

func (p *parser) comparison() expr {
	first := p.binary(0)
	c := &comparison{first: first, line: p.peek().line}
	for {
		op := ""
		for _, o := range []string{"==", "!=", "<=", ">=", "<", ">"} {
			if p.punct(o) {
				op = o
				break
			}
		}
		after := p.in[min(p.at+1, len(p.in)-1)]
		switch {
		case op != "":
		case p.word("in"):
			op = "in"
		case p.is(tokName, "not") && after.kind == tokName && after.text == "in":
			p.at += 2
			op = "not in"
		case len(c.ops) == 0:
			return first
		default:
			return c
		}
		c.ops, c.rest = append(c.ops, op), append(c.rest, p.binary(0))
	}
}

// precedences lists the binary operators of numbers and texts, those that bind loosest first.
var precedences = [][]string{{"+", "-"}, {"~"}, {"*", "//", "/", "%"}, {"**"}}

// binary parses a chain of operators of one precedence, whose operands bind tighter.
func (p *parser) binary(level int) expr {
	if level == len(precedences) {
		return p.unary(true)
	}
	x := p.binary(level + 1)
	for n := 0; ; n++ {
		p.link(n)
		found := false
		for _, op := range precedences[level] {
			if line := p.peek().line; p.punct(op) {
				right := p.binary(level + 1)
				if isSafe(x) || isSafe(right) {
					fail(line, "safe or escape beside an operator is not supported, since it escapes the other side")
				}
				x, found = &arithmetic{op, x, right, line}, true
				break
			}
		}
		if !found {
			return x
		}
	}
}

func isSafe(x expr) bool {
	f, ok := x.(*filterOf)
	return ok && (f.name == "safe" || f.name == "escape" || f.name == "e")
}

func (p *parser) unary(filters bool) expr {
	p.deeper()
	defer func() { p.depth-- }()
	line := p.peek().line
	var x expr
	switch {
	case p.punct("-"):
		x = &negative{p.unary(false), line}
	case p.punct("+"):
		x = p.unary(false)
	default:
		x = p.postfix(p.primary())
	}
	if filters {
		x = p.filters(x)
	}
	return x
}

func (p *parser) primary() expr {
	t := p.next()
	switch t.kind {
	case tokString:
		for p.peek().kind == tokString {
			t.text += p.next().text
		}
		return literal{t.text}
	case tokInt:
		return literal{parseInt(t.text, t.line)}
	case tokFloat:
		return literal{parseFloat(t.text, t.line)}
	case tokName:
		switch t.text {
		case "true", "True":
			return literal{true}
		case "false", "False":
			return literal{false}
		case "none", "None":
			return literal{nil}
		}
		return nameOf{t.text}
	case tokPunct:
		switch t.text {
		case "(":
			if p.punct(")") {
				return &listOf{kind: aTuple}
			}
			x := p.tuple(p.expression)
			p.expect(tokPunct, ")")
			return x
		case "[":
			return &listOf{items: p.items("]")}
		case "{":
			return p.dict(t.line)
		}
	}
	fail(t.line, "want a value here")
	return nil
}

// items parses expressions with commas between them up to a mark.
func (p *parser) items(end string) (items []expr) {
	for !p.punct(end) {
		items = append(items, p.expression())
		if !p.is(tokPunct, end) {
			p.expect(tokPunct, ",")
		}
	}
	return items
}

func (p *parser) dict(line int) expr {
	d := &dictOf{line: line}
	for !p.punct("}") {
		d.keys = append(d.keys, p.expression())
		p.expect(tokPunct, ":")
		d.values = append(d.values, p.expression())
		if !p.is(tokPunct, "}") {
			p.expect(tokPunct, ",")
		}
	}
	return d
}

// postfix parses the attributes, items and calls that follow a value.
func (p *parser) postfix(x expr) expr {
	for n := 0; ; n++ {
		p.link(n)
		line := p.peek().line
		switch {
		case p.punct("."):
			if t := p.peek(); t.kind == tokInt {
				p.at++
				x = &itemOf{x, literal{parseInt(t.text, line)}, line}
				continue
			}
			x = &attrOf{x, p.name(), line}
		case p.punct("["):
			x = p.subscript(x, line)
		case p.punct("("):
			x = &callOf{x, p.arguments(), line}
		default:
			return x
		}
	}
}

func (p *parser) subscript(x expr, line int) expr {
	var bounds [3]expr
	n := 0
	for ; ; n++ {
		if !p.is(tokPunct, ":") && !p.is(tokPunct, "]") {
			bounds[n] = p.expression()
		}
		if n == 2 || !p.punct(":") {
			break
		}
	}
	p.expect(tokPunct, "]")
	switch {
	case n > 0:
		return &sliceOf{x, bounds[0], bounds[1], bounds[2], line}
	case bounds[0] == nil:
		fail(line, "want a value here")
	}
	return &itemOf{x, bounds[0], line}
}

// arguments parses those of a call, after its opening mark.
func (p *parser) arguments() (a arguments) {
	for !p.punct(")") {
		if p.is(tokPunct, "**") || a.many != nil {
			p.fail("arguments of a dict, or behind a list of arguments, are not supported")
		}
		if p.punct("*") {
			a.many = p.expression()
		} else if after := p.in[min(p.at+1, len(p.in)-1)]; p.peek().kind == tokName && after.kind == tokPunct &&
			after.text == "=" {
			a.names = append(a.names, p.name())
			p.at++
			a.named = append(a.named, p.expression())
		} else {
			a.values = append(a.values, p.expression())
		}
		if !p.is(tokPunct, ")") {
			p.expect(tokPunct, ",")
		}
	}
	return a
}

// filters parses the filters, tests and calls that follow a value.
func (p *parser) filters(x expr) expr {
	for n := 0; ; n++ {
		p.link(n)
		line := p.peek().line
		switch {
		case p.punct("|"):
			x = &filterOf{x, p.name(), p.optional(), line}
		case p.word("is"):
			x = p.test(x, line)
		case p.punct("("):
			x = &callOf{x, p.arguments(), line}
		default:
			return x
		}
	}
}

func (p *parser) optional() (a arguments) {
	if p.punct("(") {
		a = p.arguments()
	}
	return a
}

// test parses a test after the word is. Its one argument may stand without parentheses.
func (p *parser) test(x expr, line int) expr {
	t := &testOf{x: x, line: line, not: p.word("not")}
	t.name = p.name()
	next := p.peek()
	bare := next.kind == tokString || next.kind == tokInt || next.kind == tokFloat ||
		next.kind == tokPunct && (next.text == "[" || next.text == "{") ||
		next.kind == tokName && !reserved[next.text]
	switch {
	case p.is(tokPunct, "("):
		t.args = p.optional()
	case bare:
		t.args.values = []expr{p.postfix(p.primary())}
	}
	return t
}

// reserved are names that are no argument of a test.
var reserved = map[string]bool{"else": true, "or": true, "and": true, "if": true, "is": true, "in": true, "not": true,
	"recursive": true}
