package datasets

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// pyString decodes the Python string literal that s begins with, as repr writes
// it, and returns what follows; ok is false when it does not end. A lone
// surrogate, which UTF-8 cannot hold, becomes U+FFFD.
func pyString(s string) (text, rest string, ok bool) {
	end := pyStringEnd(s)
	if end < 0 {
		return "", s, false
	}
	inner, rest := s[1:end-1], s[end:]
	var b strings.Builder
	b.Grow(len(inner))
	for {
		i := strings.IndexByte(inner, '\\')
		if i < 0 {
			b.WriteString(inner)
			return strings.ToValidUTF8(b.String(), string(utf8.RuneError)), rest, true
		}
		b.WriteString(inner[:i])
		inner = inner[i+1:]
		inner = inner[pyEscape(&b, inner):]
	}
}

// pyStringEnd returns the length of the string literal that s begins with;
// negative when there is none or it does not end.
func pyStringEnd(s string) int {
	if s == "" || s[0] != '\'' && s[0] != '"' {
		return -1
	}
	stops := s[:1] + `\`
	for i := 1; ; i += 2 { // behind a backslash and what it escapes
		n := strings.IndexAny(s[min(i, len(s)):], stops)
		if n < 0 {
			return -1
		}
		if i += n; s[i] == s[0] {
			return i + 1
		}
	}
}

// pyEscape writes what an escape stands for and returns its length without the
// backslash.
func pyEscape(b *strings.Builder, s string) int {
	digits := 0
	switch s[0] {
	case 'n':
		b.WriteByte('\n')
	case 'r':
		b.WriteByte('\r')
	case 't':
		b.WriteByte('\t')
	case 'x':
		digits = 2
	case 'u':
		digits = 4
	case 'U':
		digits = 8
	case '\\', '\'', '"':
		b.WriteByte(s[0])
	default: // none that repr writes
		b.WriteByte('\\')
		return 0
	}
	if digits == 0 {
		return 1
	}
	if len(s) <= digits {
		b.WriteByte('\\')
		return 0
	}
	n, err := strconv.ParseUint(s[1:1+digits], 16, 32)
	if err != nil {
		b.WriteByte('\\')
		return 0
	}
	b.WriteRune(rune(min(n, utf8.MaxRune+1))) // what is no rune becomes U+FFFD
	return 1 + digits
}

// pyFields splits "prompt: 'x', params: P(a=1, b=[2]), ids: None." into its
// fields, as far as they go. Values are as they stand; commas and colons within
// brackets and strings belong to them.
func pyFields(s string) map[string]string {
	fields := map[string]string{}
	for s != "" {
		name, rest, ok := strings.Cut(s, ": ")
		if !ok {
			break
		}
		end := pyValue(rest)
		if end < 0 {
			break // cut within a string or a bracket
		}
		fields[name] = strings.TrimSuffix(rest[:end], ".")
		s = strings.TrimLeft(rest[end:], ", ")
	}
	return fields
}

// pyNext is what stands between a value and the next; one version of vLLM left
// out the space.
var pyNext = regexp.MustCompile(`^, ?[a-z][a-z_ ]*: `)

// pyValue returns the length of the value that s begins with; negative when it
// does not end.
func pyValue(s string) int {
	depth := 0
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c == '\'' || c == '"':
			n := pyStringEnd(s[i:])
			if n < 0 {
				return -1
			}
			i += n
			continue
		case c == '(' || c == '[' || c == '{' || c == '<':
			depth++
		case c == ')' || c == ']' || c == '}' || c == '>':
			depth--
		case c == ',' && depth <= 0 && pyNext.MatchString(s[i:min(len(s), i+50)]):
			return i
		}
		i++
	}
	if depth > 0 {
		return -1
	}
	return len(s)
}
