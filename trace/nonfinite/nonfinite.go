package nonfinite

import (
	"bytes"
	"io"
)

// words are what Python writes, each with the null that takes its place. A longer one is filled
// up with spaces; NaN alone makes its text longer, by one byte.
var words = []struct{ word, null string }{{"NaN", "null"}, {"-Infinity", "null     "}, {"Infinity", "null    "}}

// Null returns a text of JSON with null in place of each number that is not finite, outside of
// strings. It returns text itself where there is none. grown are the offsets in what it returns
// behind which everything stands one byte further on than in text.
func Null(text []byte) (out []byte, grown []int) {
	if !bytes.Contains(text, []byte("NaN")) && !bytes.Contains(text, []byte("Infinity")) {
		return text, nil
	}
	var s scanner
	out, rest := s.append(make([]byte, 0, len(text)+16), text, func(at int) { grown = append(grown, at) })
	if out = append(out, rest...); bytes.Equal(out, text) {
		return text, nil
	}
	return out, grown
}

// A scanner knows whether a text is inside a string of JSON.
type scanner struct{ inString, escaped bool }

// append appends text with the words replaced. rest is the end of text, outside of strings, that
// may be the beginning of a word.
func (s *scanner) append(dst, text []byte, grew func(at int)) (out, rest []byte) {
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case s.escaped:
			s.escaped = false
		case s.inString && c == '\\':
			s.escaped = true
		case c == '"':
			s.inString = !s.inString
		case s.inString:
		case c == 'N' || c == 'I' || c == '-':
			word, null, begun := wordAt(text[i:])
			if begun {
				return dst, text[i:]
			}
			if word > 0 {
				dst = append(dst, null...)
				if len(null) > word {
					grew(len(dst))
				}
				i += word
				continue
			}
		}
		dst = append(dst, c)
		i++
	}
	return dst, nil
}

// wordAt returns the length of the word that a text begins with, and its null. begun reports that
// the text ends within one.
func wordAt(text []byte) (length int, null string, begun bool) {
	for _, w := range words {
		if bytes.HasPrefix(text, []byte(w.word)) {
			return len(w.word), w.null, false
		}
		begun = begun || len(text) < len(w.word) && w.word[:len(text)] == string(text)
	}
	return 0, "", begun
}

// NewReader reads JSON with null in place of each number that is not finite. Errors are those of r.
func NewReader(r io.Reader) io.Reader { return &reader{from: r} }

type reader struct {
	from  io.Reader
	state scanner
	in    []byte // what was read; its first kept bytes may begin a word
	kept  int
	out   []byte // replaced, and not handed out yet
	spare []byte
	err   error
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	for len(r.out) == 0 && r.err == nil {
		if r.in == nil {
			r.in = make([]byte, 64<<10)
		}
		n, err := r.from.Read(r.in[r.kept:])
		out, rest := r.state.append(r.spare[:0], r.in[:r.kept+n], func(int) {})
		if r.err = err; err != nil {
			out, rest = append(out, rest...), nil
		}
		r.kept = copy(r.in, rest)
		r.out, r.spare = out, out
	}
	n := copy(p, r.out)
	r.out = r.out[n:]
	if n > 0 {
		return n, nil
	}
	return 0, r.err
}
