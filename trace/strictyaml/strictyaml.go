package strictyaml

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"reprise/trace/objectstore"
)

// Bounds of a file. The parser needs memory in the square of the depth, and some
// 200 bytes for each byte of text.
type Bounds struct {
	What  string // what the file is, such as "a suite"
	Bytes int
}

// Every file is held to these. A list of aliases of a list multiplies the two.
const (
	maxDepth   = 32
	maxAliases = 64
	// maxKeys bounds the lines that may have a key, an anchor or an item: the parser takes time in
	// the square of them.
	maxKeys = 8 << 10
)

// A fault is what is wrong at a place of a file. Line and column begin at 1.
type fault struct {
	Line, Column int
	Why          string
}

// Error implements error. It has no place, see [Named].
func (f *fault) Error() string { return f.Why }

// Named puts the name of the file before an error, with line and column where
// they are known: suite.yaml:3:5: unknown key "laod". An error that has a name
// already keeps it.
func Named(name string, err error) error {
	var done *named
	if err == nil || errors.As(err, &done) {
		return err
	}
	return &named{name, err}
}

type named struct {
	name string
	err  error
}

// Error implements error.
func (n *named) Error() string {
	var f *fault
	if errors.As(n.err, &f) {
		return fmt.Sprintf("%s:%d:%d: %s", n.name, f.Line, f.Column, f.Why)
	}
	return n.name + ": " + n.err.Error()
}

// Unwrap is for [errors.Is].
func (n *named) Unwrap() error { return n.err }

// ReadFile reads a file that is no larger than its bounds.
func ReadFile(path string, b Bounds) ([]byte, error) {
	f, err := objectstore.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, int64(b.Bytes)+1))
	if err == nil && len(text) > b.Bytes {
		err = Named(path, b.tooLarge())
	}
	return text, err
}

func (b Bounds) tooLarge() error { return fmt.Errorf("%s has at most %d bytes", b.What, b.Bytes) }

// Parse reads the one document of a text. Errors carry their place where it
// is known.
func Parse(text []byte, b Bounds) (Node, error) {
	switch {
	case len(text) > b.Bytes:
		return Node{}, b.tooLarge()
	case !utf8.Valid(text):
		return Node{}, errors.New("it is not UTF-8")
	case tooMany(text):
		return Node{}, fmt.Errorf("more than %d keys, items and anchors", maxKeys)
	case tooDeep(text):
		return Node{}, fmt.Errorf("more than %d nested lists or maps", maxDepth)
	}
	file, err := parser.ParseBytes(text, 0)
	switch {
	case err != nil:
		return Node{}, translated(err)
	case len(file.Docs) > 1:
		return Node{}, errors.New("it has more than one document")
	case len(file.Docs) == 0 || file.Docs[0].Body == nil || file.Docs[0].Body.Type() == ast.CommentType:
		return Node{}, errors.New("it is empty")
	}
	var v aliases
	ast.Walk(&v, file.Docs[0].Body)
	return Node{file.Docs[0].Body, text, ""}, v.fault
}

// tooMany reports whether a text may have more keys, items and anchors than the parser should take.
func tooMany(text []byte) bool {
	n, before := 0, byte('\n')
	for i, c := range text {
		next := byte('\n')
		if i+1 < len(text) {
			next = text[i+1]
		}
		spaced := next == ' ' || next == '\t' || next == '\n' || next == '\r'
		switch {
		case c == ':' && spaced, c == '-' && spaced && (before == '\n' || before == ' '),
			(c == '&' || c == '!') && !spaced && before != '"':
			n++
		}
		before = c
	}
	return n > maxKeys
}

// tooDeep reports whether a text nests too deeply. It counts open brackets, and the dashes and question marks at the
// beginning of a line, also those in quotes.
func tooDeep(text []byte) bool {
	open, marks, begun := 0, 0, false
	for _, c := range text {
		switch {
		case c == '\n' || c == '\r':
			marks, begun = 0, false
		case c == '[' || c == '{':
			open, begun = open+1, true
		case c == ']' || c == '}':
			open = max(0, open-1)
		case (c == '-' || c == '?') && !begun:
			marks++
		case c != ' ' && c != '\t':
			begun = true
		}
		if open > maxDepth || marks > maxDepth {
			return true
		}
	}
	return false
}

// aliases is a visitor that counts aliases.
type aliases struct {
	n     int
	fault error
}

// Visit implements [ast.Visitor].
func (v *aliases) Visit(n ast.Node) ast.Visitor {
	if alias, ok := n.(*ast.AliasNode); ok {
		if v.n++; v.n == maxAliases+1 {
			v.fault = faultAt(alias.GetToken().Position, "more than %d aliases", maxAliases)
		}
	}
	return v
}

func faultAt(at *token.Position, format string, args ...any) error {
	return &fault{at.Line, at.Column, fmt.Sprintf(format, args...)}
}

// translated is an error of the library as a fault, without the source that the
// library shows.
func translated(err error) error {
	var wrongType *yaml.TypeError
	var tooLarge *yaml.OverflowError
	var library yaml.Error
	switch {
	case errors.As(err, &tooLarge) && tooLarge.Token != nil:
		return faultAt(tooLarge.Token.Position, "the number is too large")
	case errors.As(err, &wrongType) && wrongType.Token != nil:
		return faultAt(wrongType.Token.Position, "want %s", kindName(wrongType.DstType))
	case errors.As(err, &library) && library.GetToken() != nil:
		why := library.GetMessage()
		if strings.HasPrefix(why, "found character '\t'") {
			why = "a tab: indent with spaces"
		}
		return faultAt(library.GetToken().Position, "%s", why)
	}
	return err
}
