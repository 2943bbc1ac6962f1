package jinja

import (
	"cmp"
	"slices"
	"strings"
)

// globals are the functions that every template has.
var globals = map[string]any{
	"range": builtin(func(c *invocation) any {
		lo, hi, step := 0, c.number(0, "", 0), c.number(2, "", 1)
		if len(c.args) > 1 {
			lo, hi = hi, c.number(1, "", 0)
		}
		if step == 0 {
			c.fail("a range with the step 0")
		}
		if (float64(hi)-float64(lo))/float64(step) > maxRange {
			c.fail("a range of more than 100000 numbers")
		}
		n := max(0, (hi-lo+step-cmp.Compare(step, 0))/step)
		c.r.grow(c.line, 16*n)
		list := newSequence(aView, make([]any, n)...)
		for i := range n {
			list.Items[i] = int64(lo + i*step)
		}
		return list
	}),
	"namespace": builtin(func(c *invocation) any {
		n := &namespace{*NewDict()}
		c.fill(&n.Dict)
		return n
	}),
	"dict": builtin(func(c *invocation) any {
		d := NewDict()
		c.fill(d)
		return d
	}),
}

// maxRange is MAX_RANGE of Jinja's sandbox, in which transformers renders.
const maxRange = 100_000

// fill sets what a Dict is made of: another one, and named arguments.
func (c *invocation) fill(d *Dict) {
	switch from := c.arg(0, "").(type) {
	case undefined:
	case *Dict:
		d.whole = from.whole
		for _, k := range from.keys {
			d.Set(k, from.values[k])
		}
	default:
		c.fail("an argument is not a dict")
	}
	for _, k := range c.names {
		d.Set(k, c.named[k])
	}
}

// methodOf is the method of a value, or nil.
func methodOf(v any, name string) any {
	switch v := v.(type) {
	case string:
		if m, ok := methods[name]; ok {
			return builtin(func(c *invocation) any {
				c.r.grow(c.line, len(v))
				return m(v, c)
			})
		}
	case *Dict:
		switch name {
		case "items":
			return builtin(func(c *invocation) any { return c.items(v, aView) })
		case "keys":
			return builtin(func(c *invocation) any { return newSequence(aView, c.r.iterate(v, c.line)...) })
		case "values":
			return builtin(func(c *invocation) any {
				c.r.grow(c.line, 16*v.Len())
				list := newSequence(aView)
				for _, k := range v.keys {
					list.Items = append(list.Items, v.values[k])
				}
				return list
			})
		case "get":
			return builtin(func(c *invocation) any {
				if found, ok := v.find(c.arg(0, "")); ok {
					return found
				}
				if len(c.args) > 1 {
					return c.args[1]
				}
				return nil
			})
		}
	}
	return nil
}

// items lists keys and values.
func (c *invocation) items(d *Dict, kind sequence) *List {
	c.r.grow(c.line, 64*d.Len())
	list := newSequence(kind)
	for i, k := range d.keys {
		list.Items = append(list.Items, newSequence(aTuple, d.key(i), d.values[k]))
	}
	return list
}

// methods are those of strings.
var methods = map[string]func(s string, c *invocation) any{
	"strip":        func(s string, c *invocation) any { return strip(s, c, true, true) },
	"lstrip":       func(s string, c *invocation) any { return strip(s, c, true, false) },
	"rstrip":       func(s string, c *invocation) any { return strip(s, c, false, true) },
	"lower":        func(s string, _ *invocation) any { return strings.ToLower(s) },
	"upper":        func(s string, _ *invocation) any { return strings.ToUpper(s) },
	"title":        func(s string, _ *invocation) any { return title(s) },
	"capitalize":   func(s string, _ *invocation) any { return capitalize(s) },
	"startswith":   func(s string, c *invocation) any { return c.affix(s, strings.HasPrefix) },
	"endswith":     func(s string, c *invocation) any { return c.affix(s, strings.HasSuffix) },
	"removeprefix": func(s string, c *invocation) any { return strings.TrimPrefix(s, c.text(0, "", "")) },
	"removesuffix": func(s string, c *invocation) any { return strings.TrimSuffix(s, c.text(0, "", "")) },
	"replace":      replaced,
	"split":        func(s string, c *invocation) any { return split(s, c, false) },
	"rsplit":       func(s string, c *invocation) any { return split(s, c, true) },
	"splitlines": func(s string, c *invocation) any {
		if truth(c.arg(0, "keepends")) {
			c.fail("splitlines keeps no line ends here")
		}
		list := NewList()
		for line := range strings.Lines(lineEnds.Replace(s)) {
			c.r.grow(c.line, 32)
			list.Items = append(list.Items, strings.TrimSuffix(line, "\n"))
		}
		return list
	},
	"find":  func(s string, c *invocation) any { return place(s, c, strings.Index) },
	"rfind": func(s string, c *invocation) any { return place(s, c, strings.LastIndex) },
	"count": func(s string, c *invocation) any { return int64(strings.Count(s, c.text(0, "", ""))) },
	"join":  func(s string, c *invocation) any { return c.join(c.arg(0, ""), s) },
	"isdigit": func(s string, _ *invocation) any {
		return s != "" && strings.Trim(s, "0123456789") == ""
	},
	"isspace": func(s string, _ *invocation) any { return s != "" && strings.TrimFunc(s, IsSpace) == "" },
}

// lineEnds makes one line end of all those that Python knows.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\x1c", "\n", "\x1d", "\n", "\x1e", "\n",
	"\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

// place is where a text stands in another, in characters; -1 where it does not.
func place(s string, c *invocation, of func(s, t string) int) any {
	if len(c.args) > 1 {
		c.fail("a search of a part takes no place here")
	}
	i := of(s, c.text(0, "", ""))
	if i > 0 {
		i = runes(s[:i])
	}
	return int64(i)
}

// affix tries one affix, or each of a list.
func (c *invocation) affix(s string, has func(s, t string) bool) bool {
	if len(c.args) > 1 {
		c.fail("a search of a part takes no place here")
	}
	if list, ok := c.arg(0, "").(*List); ok {
		return slices.ContainsFunc(list.Items, func(v any) bool {
			t, ok := v.(string)
			return ok && has(s, t)
		})
	}
	return has(s, c.text(0, "", ""))
}

func strip(s string, c *invocation, left, right bool) string {
	set, given := c.arg(0, "").(string)
	drop := IsSpace
	if given {
		drop = func(r rune) bool { return strings.ContainsRune(set, r) }
	}
	if left {
		s = strings.TrimLeftFunc(s, drop)
	}
	if right {
		s = strings.TrimRightFunc(s, drop)
	}
	return s
}

func replaced(s string, c *invocation) any {
	from, to := c.text(0, "old", ""), c.text(1, "new", "")
	n := c.number(2, "count", -1)
	times := strings.Count(s, from)
	if n >= 0 {
		times = min(times, n)
	}
	c.r.grow(c.line, max(0, len(to)-len(from))*times)
	return strings.Replace(s, from, to, n)
}

// split is str.split, or str.rsplit.
func split(s string, c *invocation, fromRight bool) any {
	most := c.number(1, "maxsplit", -1)
	var parts []string
	sep := c.text(0, "sep", "")
	switch {
	case sep == "" && most < 0:
		parts = strings.FieldsFunc(s, IsSpace)
	case sep == "":
		c.fail("split at white space takes no limit here")
	case most < 0:
		parts = strings.Split(s, sep)
	case fromRight:
		for ; most > 0; most-- {
			i := strings.LastIndex(s, sep)
			if i < 0 {
				break
			}
			parts, s = append(parts, s[i+len(sep):]), s[:i]
		}
		parts = append(parts, s)
		slices.Reverse(parts)
	default:
		parts = strings.SplitN(s, sep, most+1)
	}
	c.r.grow(c.line, 32*len(parts))
	list := NewList(make([]any, len(parts))...)
	for i, part := range parts {
		list.Items[i] = part
	}
	return list
}

// join puts the texts of values together.
func (c *invocation) join(v any, sep string) string {
	items := c.r.iterate(v, c.line)
	texts := make([]string, len(items))
	n := 0
	for i, x := range items {
		texts[i] = c.r.text(c.line, x)
		n += len(texts[i]) + len(sep)
	}
	c.r.grow(c.line, n)
	return strings.Join(texts, sep)
}

func capitalize(s string) string {
	for i, r := range s {
		n := len(string(r))
		return s[:i] + strings.ToUpper(s[i:i+n]) + strings.ToLower(s[i+n:])
	}
	return s
}

// title begins each word with a capital.
func title(s string) string {
	var b strings.Builder
	in := false
	for _, r := range s {
		letter := strings.ToLower(string(r)) != strings.ToUpper(string(r))
		switch {
		case letter && in:
			b.WriteString(strings.ToLower(string(r)))
		case letter:
			b.WriteString(strings.ToUpper(string(r)))
		default:
			b.WriteRune(r)
		}
		in = letter
	}
	return b.String()
}
