package datasets

import (
	"bytes"
	"encoding/json"
	"strings"
)

// scan counts what the table does not name in a record that a decoder reads into
// structs, and so never gets to see. raw is meant to be valid JSON. It is walked without
// decoding it, since the record may be megabytes of text.
func (c *fieldCounter) scan(raw []byte) {
	if c != nil {
		s := fieldScan{c: c, rest: raw}
		s.value(&c.root, nil)
	}
}

// A fieldScan is a walk over JSON, of which rest is to come.
type fieldScan struct {
	c    *fieldCounter
	rest []byte
}

// peek returns the next byte that is no white space; 0 at the end.
func (s *fieldScan) peek() byte {
	if s.rest = bytes.TrimLeft(s.rest, " \t\r\n"); len(s.rest) == 0 {
		return 0
	}
	return s.rest[0]
}

// step passes over one byte, behind white space.
func (s *fieldScan) step() {
	if s.peek() != 0 {
		s.rest = s.rest[1:]
	}
}

// value passes over a value, which is known or in a node that is not; with
// neither it is not of interest. It returns the kind of what is no object.
func (s *fieldScan) value(known *knownField, node *fieldNode) (kind string) {
	switch s.peek() {
	case '{':
		s.object(known, node)
		return ""
	case '[':
		var member *knownField
		if known != nil {
			member = known.below[listMembers]
		}
		for s.step(); s.peek() != ']' && s.peek() != 0; {
			if s.value(member, nil); s.peek() == ',' {
				s.step()
			}
		}
		s.step()
		return listKind
	case '"':
		s.text()
		return textKind
	}
	end := bytes.IndexAny(s.rest, ",]} \t\r\n")
	if end < 0 {
		end = len(s.rest)
	}
	word := s.rest[:end]
	s.rest = s.rest[end:]
	switch {
	case len(word) == 0: // no JSON: go on all the same
		s.step()
		return ""
	case word[0] == 'n':
		return ""
	case word[0] == 't' || word[0] == 'f':
		return flagKind
	}
	return numberKind
}

// object passes over an object, and counts the fields in it that are not known.
func (s *fieldScan) object(known *knownField, node *fieldNode) {
	for s.step(); s.peek() == '"'; {
		key := s.key()
		s.step() // the colon
		switch {
		case known == nil && node == nil || known != nil && len(known.below) == 0:
			s.value(nil, nil)
		case known == nil:
			s.count(node, key)
		default:
			// encoding/json takes keys in any case.
			if below := known.child(strings.ToLower(key)); below != nil {
				s.value(below, nil)
			} else {
				s.count(&known.dropped, key)
			}
		}
		if s.peek() == ',' {
			s.step()
		}
	}
	s.step()
}

func (s *fieldScan) count(at *fieldNode, key string) {
	n := s.c.node(at, key)
	if kind := s.value(nil, n); n != nil && n.kind == "" {
		n.kind = kind
	}
}

// key passes over a key and returns it. A long one is cut: it is counted, not kept.
func (s *fieldScan) key() string {
	raw := s.text()
	raw = raw[:min(len(raw), maxKey)]
	if bytes.IndexByte(raw, '\\') < 0 {
		return strings.Trim(string(raw), `"`)
	}
	var key string
	if json.Unmarshal(raw, &key) != nil {
		return string(raw)
	}
	return key
}

// maxKey bounds what is kept of a key.
const maxKey = 1 << 10

// text passes over a string and returns it as it is written.
func (s *fieldScan) text() []byte {
	i := 1
	for i < len(s.rest) && s.rest[i] != '"' {
		n := bytes.IndexAny(s.rest[i:], `"\`)
		if n < 0 {
			i = len(s.rest)
			break
		}
		if i += n; s.rest[i] == '\\' {
			i += 2
		}
	}
	raw := s.rest[:min(i+1, len(s.rest))]
	s.rest = s.rest[len(raw):]
	return raw
}
