package contract

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A lexeme is a word, a quoted text, an operator or a parenthesis of a contract's
// clause or scope.
type lexeme struct {
	kind lexemeKind
	text string // a quoted text is without its quotes, ≤ is <=
	at   int    // bytes before it
}

type lexemeKind uint8

const (
	lexEnd lexemeKind = iota
	lexWord
	lexQuoted
	lexOperator
	lexParenthesis
)

// A misplaced is what is wrong with a text, and how many bytes before it are not.
type misplaced struct {
	at  int
	why string
}

// Error implements error.
func (m *misplaced) Error() string { return m.why }

func misplacedf(at int, format string, args ...any) error {
	return &misplaced{at, fmt.Sprintf(format, args...)}
}

// An operator of a comparison, and what it means in ASCII.
type operator struct{ written, means string }

// operators, longer ones first.
var operators = []operator{
	{"<=", "<="}, {">=", ">="}, {"!=", "!="}, {"≤", "<="}, {"≥", ">="}, {"≠", "!="}, {"<", "<"}, {">", ">"}, {"=", "="},
}

// lex cuts a text into lexemes, of which the last is lexEnd.
func lex(s string) ([]lexeme, error) {
	var out []lexeme
	for at := 0; at < len(s); {
		r, size := utf8.DecodeRuneInString(s[at:])
		switch {
		case unicode.IsSpace(r):
			at += size
			continue
		case r == '(' || r == ')':
			out = append(out, lexeme{lexParenthesis, s[at : at+1], at})
			at++
			continue
		case r == '"' || r == '\'':
			end := strings.IndexRune(s[at+1:], r)
			if end < 0 {
				return nil, misplacedf(at, "this quote is not closed")
			}
			out = append(out, lexeme{lexQuoted, s[at+1 : at+1+end], at})
			at += end + 2
			continue
		}
		if i := slices.IndexFunc(operators, func(o operator) bool {
			return strings.HasPrefix(s[at:], o.written)
		}); i >= 0 {
			out = append(out, lexeme{lexOperator, operators[i].means, at})
			at += len(operators[i].written)
			continue
		}
		length := strings.IndexFunc(s[at:], func(r rune) bool { return !inWord(r) })
		if length < 0 {
			length = len(s) - at
		}
		if length == 0 {
			return nil, misplacedf(at, "this character has no meaning here; texts that hold it want quotes")
		}
		out = append(out, lexeme{lexWord, s[at : at+length], at})
		at += length
	}
	return append(out, lexeme{lexEnd, "", len(s)}), nil
}

// inWord are the characters of names, numbers, durations (µs), percentages and URLs.
func inWord(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_-+./:%", r))
}
