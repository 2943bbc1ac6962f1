package spec

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// MaxText is the largest text that [Parse] reads, in bytes. Text is cheap and what
// YAML makes of it is not: the parser takes some 200 bytes of memory for each.
const MaxText = 1 << 20

// Bounds of what a text can do within that. The parser needs memory in the
// square of the depth; a list of aliases of a list multiplies the two.
const (
	maxDepth   = 32
	maxAliases = 64
)

// Parse reads a specification. Errors name the line and column at fault, or
// those of the nearest key that is there when one is missing.
func Parse(name string, text []byte) (*Spec, error) {
	s := new(Spec)
	doc, err := parseYAML(text)
	if err == nil {
		err = yaml.NewDecoder(bytes.NewReader(text), yaml.Strict()).Decode(s)
	}
	if err == nil {
		err = s.Check()
	}
	if err == nil {
		return s, nil
	}
	place, why := fault(doc, err)
	if place == nil {
		return nil, fmt.Errorf("%s: %s", name, why)
	}
	return nil, fmt.Errorf("%s:%d:%d: %s", name, place.Line, place.Column, why)
}

// parseYAML reads the one document of a text, within bounds.
func parseYAML(text []byte) (ast.Node, error) {
	if len(text) > MaxText {
		return nil, fmt.Errorf("want at most %d bytes", MaxText)
	}
	if tooDeep(text) {
		return nil, fmt.Errorf("more than %d lists or maps within each other", maxDepth)
	}
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, err
	}
	switch {
	case len(file.Docs) > 1:
		return nil, errors.New("it has more than one document")
	case len(file.Docs) == 0 || file.Docs[0].Body == nil || file.Docs[0].Body.Type() == ast.CommentType:
		return nil, errors.New("it is empty")
	}
	v := visitor{}
	ast.Walk(&v, file.Docs[0].Body)
	return file.Docs[0].Body, v.fault
}

// tooDeep tells whether a text nests further than any specification does: by
// brackets, or by dashes and question marks at the beginning of a line. Those
// within quotes count as well.
func tooDeep(text []byte) bool {
	open, marks, begun := 0, 0, false
	for _, c := range text {
		switch c {
		case '[', '{':
			open++
		case ']', '}':
			open--
		}
		switch c {
		case '\n', '\r':
			marks, begun = 0, false
		case '-', '?':
			if !begun {
				marks++
			}
		case ' ', '\t':
		default:
			begun = true
		}
		if open > maxDepth || marks > maxDepth {
			return true
		}
	}
	return false
}

// A visitor looks for what decoding would take without a word, or would
// refuse without a place.
type visitor struct {
	aliases int
	fault   error
}

// Visit implements [ast.Visitor].
func (v *visitor) Visit(n ast.Node) ast.Visitor {
	if v.fault != nil {
		return nil
	}
	if alias, ok := n.(*ast.AliasNode); ok {
		if v.aliases++; v.aliases > maxAliases {
			v.fault = &placed{alias.GetToken().Position, fmt.Sprintf("more than %d aliases", maxAliases)}
		}
	}
	if pair, ok := n.(*ast.MappingValueNode); ok && pair.Value != nil && pair.Value.GetToken() != nil {
		if why := refused(pair.Key.GetToken().Value, pair.Value); why != "" {
			v.fault = &placed{pair.Value.GetToken().Position, why}
		}
	}
	return v
}

// refused tells why a value does not fit its key: numbers with a fraction, which
// decoding would cut off, and times.
func refused(key string, value ast.Node) string {
	switch key {
	case "requests", "block", "global", "count", "users", "window":
		if f, ok := value.(*ast.FloatNode); ok && f.Value != math.Trunc(f.Value) {
			return key + ": want a whole number"
		}
	case "duration":
		switch n := value.(type) {
		case *ast.StringNode:
			if _, err := time.ParseDuration(n.Value); err != nil {
				return key + ": want a time such as 30m"
			}
		case *ast.IntegerNode, *ast.FloatNode:
			return key + ": want a time with its unit, such as 30m"
		}
	}
	return ""
}

// A placed is a fault whose place is known.
type placed struct {
	at  *token.Position
	why string
}

// Error implements error.
func (p *placed) Error() string { return p.why }

// A keyFault is what is wrong with a key, which is named by its path, such as
// mix[0].lengths.input.
type keyFault struct {
	path string
	err  error
}

// Error implements error.
func (f *keyFault) Error() string { return f.path + ": " + f.err.Error() }

// Unwrap is for [errors.Is].
func (f *keyFault) Unwrap() error { return f.err }

// at says which key a fault is of; faults of keys below it get longer paths.
func at(key string, err error) error {
	if err == nil {
		return nil
	}
	var below *keyFault
	if errors.As(err, &below) {
		return &keyFault{key + "." + below.path, below.err}
	}
	return &keyFault{key, err}
}

// fault is where an error is, nil when that is not known, and what it is,
// without the source that the library shows.
func fault(doc ast.Node, err error) (*token.Position, string) {
	var key *keyFault
	var here *placed
	var wrongType *yaml.TypeError
	var tooLarge *yaml.OverflowError
	var library yaml.Error
	switch {
	case errors.As(err, &here):
		return here.at, here.why
	case errors.As(err, &key):
		return keyPlace(doc, key.path), err.Error()
	case errors.As(err, &tooLarge) && tooLarge.Token != nil:
		return tooLarge.Token.Position, "the number is too large"
	case errors.As(err, &wrongType) && wrongType.Token != nil:
		return wrongType.Token.Position, "want " + kindName(wrongType.DstType)
	case errors.As(err, &library) && library.GetToken() != nil:
		return library.GetToken().Position, library.GetMessage()
	}
	return nil, err.Error()
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

// keyPlace finds a key. What a part of a mix takes from the top level is there,
// and the place of a key that is missing is that of the one above it.
func keyPlace(doc ast.Node, path string) *token.Position {
	for p := path; ; {
		if place := lookUp(doc, p); place != nil {
			return place
		}
		if inPart, ok := strings.CutPrefix(p, "mix["); ok {
			_, below, _ := strings.Cut(inPart, "]")
			if place := lookUp(doc, strings.TrimPrefix(below, ".")); place != nil {
				return place
			}
		}
		cut := strings.LastIndexAny(p, ".[")
		if cut < 0 {
			return nil
		}
		p = p[:cut]
	}
}

// lookUp returns the place of a key or of a list's element.
func lookUp(n ast.Node, path string) (place *token.Position) {
	keys := strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
	for _, key := range keys {
		if a, ok := n.(*ast.AnchorNode); ok {
			n = a.Value
		}
		place = nil
		switch m := n.(type) {
		case ast.MapNode:
			for it := m.MapRange(); place == nil && it.Next(); {
				if it.Key().GetToken().Value == key {
					n, place = it.Value(), it.Key().GetToken().Position
				}
			}
		case *ast.SequenceNode:
			if i, err := strconv.Atoi(key); err == nil && i < len(m.Values) {
				n = m.Values[i]
				place = n.GetToken().Position
				if m, ok := n.(ast.MapNode); ok {
					if it := m.MapRange(); it.Next() {
						place = it.Key().GetToken().Position
					}
				}
			}
		}
		if place == nil {
			return nil
		}
	}
	return place
}
