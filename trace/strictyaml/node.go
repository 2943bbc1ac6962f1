package strictyaml

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agnivade/levenshtein"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"reprise/trace/quantity"
)

// A Node is a value of a document: a map, a list or a scalar. The zero Node is
// not there.
type Node struct {
	node ast.Node
	text []byte // of the whole document
	name string // its key, or what an element of its list is
}

// Exists tells whether the node is there.
func (n Node) Exists() bool { return n.node != nil }

// IsMap tells whether the node has keys.
func (n Node) IsMap() bool {
	_, ok := n.node.(ast.MapNode)
	return ok
}

// Faultf is a fault where the node begins.
func (n Node) Faultf(format string, args ...any) error {
	return faultAt(n.begin(), format, args...)
}

// FaultIn is a fault so many bytes into a scalar. In a text of several lines, or
// with escapes, it is where the scalar begins.
func (n Node) FaultIn(offset int, why string) error {
	t := n.node.GetToken()
	at := *t.Position
	if value := t.Value; offset <= len(value) && strings.Contains(t.Origin, value) && !strings.Contains(value, "\n") &&
		!strings.Contains(t.Origin, `\`) {
		at.Column += utf8.RuneCountInString(value[:offset])
		if t.Type == token.DoubleQuoteType || t.Type == token.SingleQuoteType {
			at.Column++
		}
	}
	return faultAt(&at, "%s", why)
}

// begin is where a node begins. The token of a block map is its first colon.
func (n Node) begin() *token.Position {
	at := n.node.GetToken().Position
	if m, ok := n.node.(ast.MapNode); ok {
		if it := m.MapRange(); it.Next() && it.Key().GetToken().Position.Offset < at.Offset {
			return it.Key().GetToken().Position
		}
	}
	return at
}

// A Key is one that a map may have, and what reads its value.
type Key struct {
	Name string
	Read func(Node) error
}

// Keys hands the value of each key of a map to its reader. It refuses keys that
// are not listed and keys without a value; the parser has refused those that stand
// twice.
func (n Node) Keys(keys ...Key) error {
	m, ok := n.node.(ast.MapNode)
	if !ok {
		return n.want("keys and values, such as " + keys[0].Name + ":")
	}
	for it := m.MapRange(); it.Next(); {
		key := Node{it.Key(), n.text, ""}
		name := it.Key().GetToken().Value
		i := slices.IndexFunc(keys, func(k Key) bool { return k.Name == name })
		switch {
		case i < 0:
			return key.Faultf("unknown key %s: want %s", strconv.Quote(name), alternatives(keys))
		case it.Value() == nil || it.Value().Type() == ast.NullType:
			return key.Faultf("%s has no value", name)
		}
		if err := keys[i].Read(Node{it.Value(), n.text, name}); err != nil {
			return err
		}
	}
	return nil
}

// Each hands every key of a map, with its place and its value, to a reader. It refuses
// keys without a value.
func (n Node) Each(read func(key string, at, value Node) error) error {
	m, ok := n.node.(ast.MapNode)
	if !ok {
		return n.want("keys and values")
	}
	for it := m.MapRange(); it.Next(); {
		at := Node{it.Key(), n.text, ""}
		key := it.Key().GetToken().Value
		if it.Value() == nil || it.Value().Type() == ast.NullType {
			return at.Faultf("%s has no value", key)
		}
		if err := read(key, at, Node{it.Value(), n.text, key}); err != nil {
			return err
		}
	}
	return nil
}

func alternatives(keys []Key) string {
	var names []string
	for _, k := range keys[1:] {
		names = append(names, k.Name)
	}
	if len(names) == 0 {
		return keys[0].Name
	}
	return strings.Join(append([]string{keys[0].Name}, names[:len(names)-1]...), ", ") + " or " + names[len(names)-1]
}

// List hands each element of a list to a reader. It refuses an empty list, and
// more than most elements. One is what an element is, such as "a clause".
func (n Node) List(one string, most int, read func(Node) error) error {
	list, ok := n.node.(*ast.SequenceNode)
	if !ok || len(list.Values) == 0 {
		return n.want("a list whose lines each begin with a dash")
	}
	for i, v := range list.Values {
		element := Node{v, n.text, one}
		if i == most {
			return element.Faultf("%s: want %d at most", n.name, most)
		}
		if err := read(element); err != nil {
			return err
		}
	}
	return nil
}

// want is a fault that says what the value must be.
func (n Node) want(what string) error {
	if n.name == "" {
		return n.Faultf("want %s", what)
	}
	return n.Faultf("%s: want %s", n.name, what)
}

// Text is a scalar as it was written, without null and without the space around a
// text of several lines.
func (n Node) Text() (string, error) {
	switch s := n.node.(type) {
	case *ast.StringNode:
		return s.Value, nil
	case *ast.LiteralNode:
		return strings.TrimSpace(s.Value.Value), nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return s.GetToken().Value, nil
	}
	return "", n.want("text")
}

// Number is a finite number.
func (n Node) Number() (float64, error) {
	switch n.node.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		if v, err := strconv.ParseFloat(n.node.GetToken().Value, 64); err == nil &&
			!math.IsInf(v, 0) && !math.IsNaN(v) {
			return v, nil
		}
	}
	return 0, n.want("a number")
}

// Whole is the reader of a whole number from least to most, as 10000 or 10k.
func Whole[T ~int | ~int64 | ~uint64](least, most T) func(Node) (T, error) {
	return func(n Node) (T, error) {
		if s, err := n.Text(); err == nil {
			if v, err := quantity.Count(s); err == nil && v >= int64(least) && v <= int64(most) {
				return T(v), nil
			}
		}
		return 0, n.want(fmt.Sprintf("a whole number from %d to %d", least, most))
	}
}

// Into returns a reader that reads a value with read and stores it at place.
func Into[T any](place *T, read func(Node) (T, error)) func(Node) error {
	return func(n Node) error {
		v, err := read(n)
		if err == nil {
			*place = v
		}
		return err
	}
}

// Parsed is the reader of a text with a parser of its own, whose error is at the
// text.
func Parsed[T any](parse func(string) (T, error)) func(Node) (T, error) {
	return func(n Node) (v T, err error) {
		s, err := n.Text()
		if err != nil {
			return v, err
		}
		if v, err = parse(s); err != nil {
			err = n.Faultf("%s: %v", n.name, err)
		}
		return v, err
	}
}

// Source is the text of a map with as many lines and columns before it as it has in
// the document, so that what reads it finds faults where the document has them.
func (n Node) Source() []byte {
	line, column := n.begin().Line, n.begin().Column
	above := strings.Repeat("\n", line-1)
	if flow, ok := n.node.(*ast.MappingNode); ok && flow.IsFlowStyle {
		return []byte(above + strings.Repeat(" ", column-1) + n.node.String())
	}
	// as the parser counts them
	lines := strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(n.text)), "\n")
	line = min(line, len(lines))
	end := line
	for end < len(lines) { // a line with less than the indentation of the map ends it
		text := strings.TrimLeft(lines[end], " ")
		if strings.TrimSpace(text) != "" && !strings.HasPrefix(text, "#") && len(lines[end])-len(text) < column-1 {
			break
		}
		end++
	}
	return []byte(above + strings.Join(lines[line-1:end], "\n") + "\n")
}

// Decode fills a struct by its yaml tags. It refuses keys that the struct does not have.
// The library cuts the fraction off a number that is for a whole one: [Node.Walk] can
// refuse it first.
func (n Node) Decode(into any) error {
	err := yaml.NewDecoder(bytes.NewReader(nil), yaml.Strict(), typed(quantity.Duration),
		typed(quantity.Count)).DecodeFromNode(n.node, into)
	if err == nil {
		return nil
	}
	err = translated(err)
	var f *fault
	if errors.As(err, &f) {
		if unknown, ok := strings.CutPrefix(f.Why, "unknown field "); ok {
			typed := strings.Trim(unknown, `"`)
			f.Why = "unknown field " + strconv.Quote(typed) // which the library writes with line breaks that it has
			switch name := closestField(reflect.TypeOf(into), typed); name {
			case "":
			case typed:
				f.Why += ": it belongs into another map"
			default:
				f.Why += ": did you mean " + name + "?"
			}
		}
	}
	return err
}

// closestField is the key of a type, or of one within it, that differs by at most two
// letters from a key that was typed, or "".
func closestField(t reflect.Type, typed string) (found string) {
	fewest := 3
	seen := map[reflect.Type]bool{}
	var look func(reflect.Type)
	look = func(t reflect.Type) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || seen[t] {
			return
		}
		seen[t] = true
		for field := range t.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
			name = cmp.Or(name, strings.ToLower(field.Name))
			if n := levenshtein.ComputeDistance(typed, name); n < fewest && field.IsExported() {
				found, fewest = name, n
			}
			look(field.Type)
		}
	}
	look(t)
	return found
}

// typed has values of a type read as people type them.
func typed[T any](parse func(string) (T, error)) yaml.DecodeOption {
	return yaml.CustomUnmarshaler(func(into *T, text []byte) (err error) {
		*into, err = parse(strings.Trim(string(text), `"'`))
		return err
	})
}

// kindName says what a value of a type is to people.
func kindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Pointer:
		return "keys and values"
	}
	return "a whole number"
}

// Find is the key, or the element of a list, at a path such as mix[0].lengths. Its
// faults are where it stands. It is not ok where there is none.
func (n Node) Find(path string) (at Node, ok bool) {
	keys := strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
	at = n
	for _, key := range keys {
		if a, ok := n.node.(*ast.AnchorNode); ok {
			n.node = a.Value
		}
		found := false
		switch m := n.node.(type) {
		case ast.MapNode:
			for it := m.MapRange(); !found && it.Next(); {
				if found = it.Key().GetToken().Value == key; found {
					at, n = Node{it.Key(), n.text, ""}, Node{it.Value(), n.text, key}
				}
			}
		case *ast.SequenceNode:
			if i, err := strconv.Atoi(key); err == nil && i < len(m.Values) {
				n = Node{m.Values[i], n.text, key}
				at, found = n, true
			}
		}
		if !found {
			return Node{}, false
		}
	}
	return at, true
}

// Walk hands every key and its value to a reader, also those in maps and lists
// below, until it refuses one.
func (n Node) Walk(read func(key string, value Node) error) error {
	v := walker{text: n.text, read: read}
	ast.Walk(&v, n.node)
	return v.err
}

type walker struct {
	text []byte
	read func(string, Node) error
	err  error
}

// Visit implements [ast.Visitor].
func (v *walker) Visit(n ast.Node) ast.Visitor {
	if pair, ok := n.(*ast.MappingValueNode); ok && v.err == nil && pair.Value != nil && pair.Value.GetToken() != nil {
		key := pair.Key.GetToken().Value
		v.err = v.read(key, Node{pair.Value, v.text, key})
	}
	if v.err != nil {
		return nil
	}
	return v
}
