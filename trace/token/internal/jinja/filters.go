package jinja

import (
	"cmp"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// filters are those that are supported. Their value is the first argument. It is filled below, since some look up
// others.
var filters map[string]builtin

// tests are those that are supported.
var tests = map[string]builtin{
	"defined":   func(c *invocation) any { _, no := c.args[0].(undefined); return !no },
	"undefined": func(c *invocation) any { _, no := c.args[0].(undefined); return no },
	"none":      func(c *invocation) any { return c.args[0] == nil },
	"string":    func(c *invocation) any { _, ok := c.args[0].(string); return ok },
	"boolean":   func(c *invocation) any { _, ok := c.args[0].(bool); return ok },
	"true":      func(c *invocation) any { return c.args[0] == true },
	"false":     func(c *invocation) any { return c.args[0] == false },
	"integer":   func(c *invocation) any { return isInteger(c.args[0]) },
	"float":     func(c *invocation) any { _, ok := c.args[0].(float64); return ok },
	"number": func(c *invocation) any {
		_, ok := numeric(c.args[0])
		return ok || isInteger(c.args[0])
	},
	"mapping":  func(c *invocation) any { _, ok := c.args[0].(*Dict); return ok },
	"iterable": hasItems,
	"sequence": func(c *invocation) any {
		list, ok := c.args[0].(*List)
		return hasItems(c) == true && (!ok || list.kind < aView)
	},
	"sameas": func(c *invocation) any {
		return reflect.TypeOf(c.args[0]) == reflect.TypeOf(c.arg(1, "other")) && comparing("==")(c) == true
	},
	"callable": func(c *invocation) any {
		switch c.args[0].(type) {
		case builtin, Func, *macro:
			return true
		}
		return false
	},
	"odd":         func(c *invocation) any { return c.modulo(2) == 1 },
	"even":        func(c *invocation) any { return c.modulo(2) == 0 },
	"divisibleby": func(c *invocation) any { return c.modulo(c.number(1, "num", 0)) == 0 },
	"in":          func(c *invocation) any { return c.r.contains(c.arg(1, ""), c.args[0], c.line) },
	"equalto":     comparing("=="), "eq": comparing("=="), "ne": comparing("!="),
	"lt": comparing("<"), "le": comparing("<="), "gt": comparing(">"), "ge": comparing(">="),
	"==": comparing("=="), "!=": comparing("!="), "<": comparing("<"), "<=": comparing("<="), ">": comparing(">"),
	">=": comparing(">="), "lessthan": comparing("<"), "greaterthan": comparing(">"),
}

// testNamed looks up a test. One that is not supported fails where it is used, as in Jinja, since a template may
// ask first, or have it for other servers.
func testNamed(name string, line int) builtin {
	f, ok := tests[name]
	if !ok {
		fail(line, "the test "+name+" is not supported")
	}
	return f
}

// filterNamed looks up a filter, likewise.
func filterNamed(name string, line int) builtin {
	f, ok := filters[name]
	if !ok {
		fail(line, "the filter "+name+" is not supported")
	}
	return f
}

func hasItems(c *invocation) any {
	switch c.args[0].(type) {
	case string, *List, *Dict, undefined:
		return true
	}
	return false
}

func comparing(op string) builtin {
	return func(c *invocation) any { return c.r.compare(op, c.args[0], c.arg(1, "other"), c.line) }
}

func isInteger(v any) bool {
	switch v.(type) {
	case int64, bigNumber:
		return true
	}
	return false
}

func (c *invocation) modulo(n int) int {
	v, ok := c.args[0].(int64)
	if !ok || n == 0 {
		c.fail("a test of something that is no integer")
	}
	return ((clamp(v) % n) + n) % n
}

func init() {
	filters = map[string]builtin{
		"trim": func(c *invocation) any {
			return strip(c.self(), &invocation{args: c.args[1:], named: c.named, line: c.line}, true, true)
		},
		"length":     func(c *invocation) any { return int64(c.length(c.args[0])) },
		"count":      func(c *invocation) any { return int64(c.length(c.args[0])) },
		"upper":      func(c *invocation) any { return strings.ToUpper(c.self()) },
		"lower":      func(c *invocation) any { return strings.ToLower(c.self()) },
		"title":      func(c *invocation) any { return words.ReplaceAllStringFunc(c.self(), capitalize) },
		"capitalize": func(c *invocation) any { return capitalize(c.self()) },
		"string":     func(c *invocation) any { return c.self() },
		"safe":       func(c *invocation) any { return c.args[0] },
		"replace": func(c *invocation) any {
			return replaced(c.self(), &invocation{r: c.r, line: c.line, args: c.args[1:], named: c.named})
		},
		"escape": escaped, "e": escaped,
		"default": defaulted, "d": defaulted,
		"list": func(c *invocation) any { return NewList(c.r.iterate(c.args[0], c.line)...) },
		"join": func(c *invocation) any {
			if a, ok := c.arg(2, "attribute").(string); ok {
				return c.join(NewList(c.each(func(v any) any { return c.path(v, a) })...), c.text(1, "d", ""))
			}
			return c.join(c.args[0], c.text(1, "d", ""))
		},
		"items": func(c *invocation) any {
			switch d := c.args[0].(type) {
			case *Dict:
				return c.items(d, once)
			case undefined:
				return newSequence(once)
			}
			c.fail("items of something that is no dict")
			return nil
		},
		"first":      func(c *invocation) any { return c.end(false) },
		"last":       func(c *invocation) any { return c.end(true) },
		"reverse":    reversed,
		"unique":     unique,
		"sort":       sorted,
		"dictsort":   dictSorted,
		"tojson":     toJSON,
		"indent":     indented,
		"map":        mapped,
		"select":     func(c *invocation) any { return c.selected(false, true) },
		"reject":     func(c *invocation) any { return c.selected(false, false) },
		"selectattr": func(c *invocation) any { return c.selected(true, true) },
		"rejectattr": func(c *invocation) any { return c.selected(true, false) },
		"int":        toInt,
		"float":      toFloat,
		"abs": func(c *invocation) any {
			if n, ok := c.args[0].(int64); ok {
				return max(n, -n)
			}
			f, _ := numeric(c.args[0])
			return max(f, -f)
		},
	}
}

// words matches what the filter title begins with a capital. The method of that name knows other words.
var words = regexp.MustCompile(`[^-\s({\[<]+`)

// self is the text of the value.
func (c *invocation) self() string {
	s := c.r.text(c.line, c.args[0])
	c.r.grow(c.line, len(s))
	return s
}

func escaped(c *invocation) any {
	s := c.self()
	c.r.grow(c.line, 5*len(s))
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;").Replace(s)
}

func defaulted(c *invocation) any {
	_, missing := c.args[0].(undefined)
	if !missing && (truth(c.args[0]) || !truth(c.arg(2, "boolean"))) {
		return c.args[0]
	}
	v := c.arg(1, "default_value")
	if _, none := v.(undefined); none {
		return ""
	}
	return v
}

func (c *invocation) end(last bool) any {
	if list, ok := c.args[0].(*List); ok && last && list.kind == once {
		c.fail(noList)
	}
	items := c.r.iterate(c.args[0], c.line)
	switch {
	case len(items) == 0:
		return undefined{}
	case last:
		return items[len(items)-1]
	}
	return items[0]
}

func reversed(c *invocation) any {
	items := slices.Clone(c.r.iterate(c.args[0], c.line))
	c.r.grow(c.line, 16*len(items))
	slices.Reverse(items)
	if _, ok := c.args[0].(string); ok {
		return c.join(NewList(items...), "")
	}
	return newSequence(once, items...)
}

// unique keeps the first of the items that are equal: texts without their case, unless it counts.
func unique(c *invocation) any {
	if _, given := c.arg(2, "attribute").(undefined); !given {
		c.fail("unique takes no attribute here")
	}
	seen, out := NewList(), newSequence(once)
	for _, v := range c.r.iterate(c.args[0], c.line) {
		key := v
		if s, ok := v.(string); ok && !truth(c.arg(1, "case_sensitive")) {
			key = strings.ToLower(s)
		}
		if !c.r.contains(seen, key, c.line) {
			seen.Items, out.Items = append(seen.Items, key), append(out.Items, v)
		}
	}
	return out
}

// each applies f to every item of the value and returns the list of results.
func (c *invocation) each(f func(v any) any) []any {
	if !truth(c.args[0]) {
		return nil // none among them
	}
	items := c.r.iterate(c.args[0], c.line)
	c.r.grow(c.line, 16*len(items))
	c.r.spend(c.line, len(items))
	out := make([]any, len(items))
	for i, v := range items {
		out[i] = f(v)
	}
	return out
}

// path follows an attribute with dots.
func (c *invocation) path(v any, attribute string) any {
	for name := range strings.SplitSeq(attribute, ".") {
		var key any = name
		if n, err := strconv.ParseInt(name, 10, 64); err == nil {
			key = n
		}
		v = c.r.item(v, key, c.line)
	}
	return v
}

// order compares two items of a list to be sorted. Texts are compared without case, unless it counts.
func (c *invocation) order(a, b any, withCase bool) int {
	s, ok := a.(string)
	t, ok2 := b.(string)
	if ok && ok2 {
		if !withCase {
			s, t = strings.ToLower(s), strings.ToLower(t)
		}
		c.r.spend(c.line, len(s)/64+1)
		return strings.Compare(s, t)
	}
	x, ok := numeric(a)
	y, ok2 := numeric(b)
	if !ok || !ok2 {
		c.fail("a list to be sorted has values without an order")
	}
	return cmp.Compare(x, y)
}

func sorted(c *invocation) any {
	items := slices.Clone(c.r.iterate(c.args[0], c.line))
	c.r.grow(c.line, 16*len(items))
	key := func(v any) any { return v }
	if a, ok := c.arg(3, "attribute").(string); ok {
		key = func(v any) any { return c.path(v, a) }
	}
	sign := 1
	if truth(c.arg(1, "reverse")) {
		sign = -1
	}
	slices.SortStableFunc(items, func(a, b any) int {
		return sign * c.order(key(a), key(b), truth(c.arg(2, "case_sensitive")))
	})
	return NewList(items...)
}

func dictSorted(c *invocation) any {
	d, ok := c.args[0].(*Dict)
	if !ok {
		c.fail("dictsort of something that is no dict")
	}
	list := c.items(d, aList)
	at, sign := 0, 1
	if c.arg(2, "by") == "value" {
		at = 1
	}
	if truth(c.arg(3, "reverse")) {
		sign = -1
	}
	slices.SortStableFunc(list.Items, func(a, b any) int {
		return sign * c.order(a.(*List).Items[at], b.(*List).Items[at], truth(c.arg(1, "case_sensitive")))
	})
	return list
}

// toJSON is the filter that transformers puts in the place of Jinja's.
func toJSON(c *invocation) any {
	e := encoder{most: c.r.bytes, item: ", ", key: ": ", ascii: truth(c.arg(1, "ensure_ascii")),
		sorted: truth(c.arg(4, "sort_keys"))}
	switch indent := c.arg(2, "indent").(type) {
	case undefined, nil:
	case int64:
		e.lines, e.item, e.indent = true, ",", strings.Repeat(" ", min(max(clamp(indent), 0), 64))
	case string:
		e.lines, e.item, e.indent = true, ",", indent[:min(len(indent), 64)]
	default:
		c.fail("an argument is not an integer")
	}
	if pair, ok := c.arg(3, "separators").(*List); ok && len(pair.Items) == 2 {
		e.item, e.key = c.r.text(c.line, pair.Items[0]), c.r.text(c.line, pair.Items[1])
	}
	e.value(c.args[0], 0)
	c.r.grow(c.line, e.b.Len())
	if e.unsupported {
		c.fail("tojson of a value that has none")
	}
	return e.b.String()
}

func indented(c *invocation) any {
	pad, given := c.arg(1, "width").(string)
	if !given {
		pad = strings.Repeat(" ", min(max(c.number(1, "width", 4), 0), 64))
	}
	lines := strings.Split(lineEnds.Replace(c.self()), "\n")
	c.r.grow(c.line, (len(pad)+16)*len(lines))
	for i := range lines {
		if i == 0 && !truth(c.arg(2, "first")) || lines[i] == "" && !truth(c.arg(3, "blank")) {
			continue
		}
		lines[i] = pad + lines[i]
	}
	return strings.Join(lines, "\n")
}

// mapped returns an attribute of each item, or each item through a filter.
func mapped(c *invocation) any {
	if a, ok := c.named["attribute"].(string); ok {
		missing, given := c.named["default"]
		return newSequence(once, c.each(func(v any) any {
			found := c.path(v, a)
			if _, none := found.(undefined); none && given {
				return missing
			}
			return found
		})...)
	}
	f, ok := filters[c.text(1, "", "")]
	if !ok {
		c.fail("a filter that is not supported")
	}
	return newSequence(once, c.each(func(v any) any {
		return f(&invocation{r: c.r, line: c.line,
			args: append([]any{v}, c.args[min(2, len(c.args)):]...), named: c.named})
	})...)
}

// selected keeps items that a test holds of, or does not: of themselves, or of an attribute.
func (c *invocation) selected(attribute, keep bool) any {
	rest := c.args[1:]
	of := func(v any) any { return v }
	if attribute {
		name := c.text(1, "", "")
		rest = c.args[min(2, len(c.args)):]
		of = func(v any) any { return c.path(v, name) }
	}
	test := func(v any) bool { return truth(v) }
	if len(rest) > 0 {
		name, _ := rest[0].(string)
		f, ok := tests[name]
		if !ok {
			c.fail("a test that is not supported")
		}
		test = func(v any) bool {
			return truth(f(&invocation{r: c.r, line: c.line, args: append([]any{v}, rest[1:]...)}))
		}
	}
	out := newSequence(once)
	if !truth(c.args[0]) {
		return out // none among them
	}
	for _, v := range c.r.iterate(c.args[0], c.line) {
		c.r.spend(c.line, 1)
		if test(of(v)) == keep {
			c.r.grow(c.line, 16)
			out.Items = append(out.Items, v)
		}
	}
	return out
}

func toInt(c *invocation) any {
	switch v := c.args[0].(type) {
	case int64, bigNumber:
		return v
	case float64, bool:
		f, _ := numeric(v)
		return int64(f)
	case string:
		if base := c.number(2, "base", 10); base != 10 {
			c.fail("int of another base than 10")
		}
		if n, err := strconv.ParseInt(strings.TrimFunc(v, IsSpace), 10, 64); err == nil {
			return n
		}
		if f, ok := toFloat(c).(float64); ok && f != 0 && math.Abs(f) < 1<<62 {
			return int64(f)
		}
	}
	return int64(c.number(1, "default", 0))
}

func toFloat(c *invocation) any {
	if f, ok := numeric(c.args[0]); ok {
		return f
	}
	if s, ok := c.args[0].(string); ok {
		f, err := strconv.ParseFloat(strings.TrimFunc(s, IsSpace), 64)
		if err == nil || math.IsInf(f, 0) {
			return f
		}
	}
	if v := c.arg(1, "default"); v != (undefined{}) {
		return v
	}
	return 0.0
}
