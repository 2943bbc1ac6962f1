package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
)

// nameless are words that stand in a sentence in place of the name of a thing, so that its reader
// has to look back for it. "What" with a capital letter begins questions and headings too.
var nameless = regexp.MustCompile(`\b([Tt]hose\s(that|of|which|whose|at|before|for|from|in|not|with)|` +
	`(of|that)\s(which|of)|nobody|alike|what\s(is|was|came|comes|follows))\b`)

// shortWords are the bytes that a key, a name or a piece of syntax may have.
const shortWords = 25

// namedThings finds strings for people that do not name the thing they are about: messages, help
// and definitions, each put together from its pieces; and the comments of packages.
func (m *module) namedThings() (faults []fault, err error) {
	for _, f := range m.files {
		if words := nameless.FindString(f.ast.Doc.Text()); words != "" {
			says := fmt.Sprintf("%q in the comment of the package: name the thing", words)
			faults = append(faults, fault{m.position(f.ast.Doc.Pos()), says})
		}
		part := map[ast.Expr]bool{} // expressions that a longer one has taken in
		ast.Inspect(f.ast, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok || part[e] {
				return true
			}
			if words := nameless.FindString(message(joined(e, part))); words != "" {
				faults = append(faults, fault{m.position(e.Pos()), fmt.Sprintf("%q: name the thing", words)})
			}
			return true
		})
	}
	return faults, nil
}

// message is a text that is long enough for a sentence; it is empty of a key, a name or syntax.
func message(text string) string {
	if len(text) <= shortWords || !strings.Contains(text, " ") {
		return ""
	}
	return text
}

// joined puts the strings together that + joins in an expression, and notes its operands in part.
// What is not written there, such as a constant, is left out.
func joined(e ast.Expr, part map[ast.Expr]bool) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, _ := strconv.Unquote(e.Value) // the parser has read it
			return text
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			part[e.X], part[e.Y] = true, true
			return joined(e.X, part) + joined(e.Y, part)
		}
	}
	return ""
}
