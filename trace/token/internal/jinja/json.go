package jinja

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

var errJSON = errors.New("not JSON")

// Decode makes a value of JSON. It keeps the order of keys, as Python does, and the difference between 1 and 1.0.
func Decode(text string) (any, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	v, err := decodeValue(d, 0)
	if err != nil {
		return nil, errJSON // the reason would quote the text
	}
	if _, err := d.Token(); err == nil {
		return nil, errJSON
	}
	return v, nil
}

func decodeValue(d *json.Decoder, depth int) (any, error) {
	t, err := d.Token()
	if err != nil || depth > maxNesting {
		return nil, errJSON
	}
	switch t {
	case json.Delim('['):
		list := NewList()
		for d.More() {
			v, err := decodeValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			list.Items = append(list.Items, v)
		}
		_, err := d.Token()
		return list, err
	case json.Delim('{'):
		dict := NewDict()
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := decodeValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			dict.Set(key.(string), v)
		}
		_, err := d.Token()
		return dict, err
	}
	switch t := t.(type) {
	case json.Delim:
		return nil, errJSON
	case json.Number:
		if strings.ContainsAny(string(t), ".eE") {
			f, err := t.Float64()
			if err != nil && !math.IsInf(f, 0) {
				return nil, errJSON
			}
			return f, nil
		}
		if n, err := t.Int64(); err == nil {
			return n, nil
		}
		return bigNumber(t), nil
	}
	return t, nil
}

// An encoder writes JSON as json.dumps does with ensure_ascii=False, which is transformers' default.
type encoder struct {
	b           strings.Builder
	indent      string // of one level; with lines set
	lines       bool
	item, key   string // separators
	sorted      bool
	ascii       bool
	unsupported bool
	most        int // bytes, beyond which it stops; 0 is without end
}

// JSON is the text that Python's json.dumps(v, ensure_ascii=False) gives, and false for a value that has none.
func JSON(v any) (string, bool) {
	e := encoder{item: ", ", key: ": "}
	e.value(v, 0)
	return e.b.String(), !e.unsupported
}

// JSONIndented is the text with indent=n.
func JSONIndented(v any, n int) (string, bool) {
	e := encoder{item: ",", key: ": ", lines: true, indent: strings.Repeat(" ", n)}
	e.value(v, 0)
	return e.b.String(), !e.unsupported
}

func (e *encoder) value(v any, depth int) {
	if depth > maxNesting {
		e.unsupported = true
	}
	if e.unsupported || e.most > 0 && e.b.Len() > e.most {
		return
	}
	switch v := v.(type) {
	case nil:
		e.b.WriteString("null")
	case bool:
		e.b.WriteString(strconv.FormatBool(v))
	case int64, bigNumber:
		e.b.WriteString(scalar(v))
	case float64:
		switch {
		case math.IsNaN(v):
			e.b.WriteString("NaN")
		case math.IsInf(v, 1):
			e.b.WriteString("Infinity")
		case math.IsInf(v, -1):
			e.b.WriteString("-Infinity")
		default:
			e.b.WriteString(floatText(v))
		}
	case string:
		e.text(v)
	case *List:
		e.unsupported = v.kind >= aView
		e.many('[', ']', len(v.Items), depth, func(i int) { e.value(v.Items[i], depth+1) })
	case *Dict:
		keys := v.keys
		if e.sorted {
			keys = slices.Sorted(slices.Values(keys))
		}
		e.many('{', '}', len(keys), depth, func(i int) {
			e.text(keys[i])
			e.b.WriteString(e.key)
			e.value(v.values[keys[i]], depth+1)
		})
	default:
		e.unsupported = true
	}
}

// many writes the members of a list or of an object.
func (e *encoder) many(open, end byte, n, depth int, write func(i int)) {
	e.b.WriteByte(open)
	for i := range n {
		if i > 0 {
			e.b.WriteString(e.item)
		}
		e.line(depth + 1)
		write(i)
	}
	if n > 0 {
		e.line(depth)
	}
	e.b.WriteByte(end)
}

func (e *encoder) line(depth int) {
	if !e.lines {
		return
	}
	e.b.WriteByte('\n')
	for range depth {
		e.b.WriteString(e.indent)
	}
}

func (e *encoder) text(s string) {
	e.b.WriteByte('"')
	from := 0
	for i, r := range s {
		escape := ""
		switch {
		case r == '"':
			escape = `\"`
		case r == '\\':
			escape = `\\`
		case r < 0x20:
			escape = controls[r]
		case r > 0x7f && e.ascii: // json.dumps leaves 0x7f
			for _, u := range utf16.AppendRune(nil, r) {
				escape += `\u` + pad(strconv.FormatInt(int64(u), 16), 4)
			}
		}
		if escape != "" {
			e.b.WriteString(s[from:i])
			e.b.WriteString(escape)
			from = i + len(string(r))
		}
	}
	e.b.WriteString(s[from:])
	e.b.WriteByte('"')
}

// controls are the escapes of the characters below the space.
var controls = func() (c [0x20]string) {
	for i := range c {
		c[i] = `\u00` + pad(strconv.FormatInt(int64(i), 16), 2)
	}
	c['\n'], c['\r'], c['\t'], c['\b'], c['\f'] = `\n`, `\r`, `\t`, `\b`, `\f`
	return c
}()
