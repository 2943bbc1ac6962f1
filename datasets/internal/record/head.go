package record

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// HeadBytes is how much of an input its format and time unit are told from.
const HeadBytes = 64 << 10

// ByteOrderMark may stand before UTF-8 that was written on Windows.
const ByteOrderMark = "\xef\xbb\xbf"

// HeadLines yields the lines of head that are not blank, without a last one
// that may be cut, unless it is the only one.
func HeadLines(head []byte) [][]byte {
	whole := bytes.HasSuffix(head, []byte("\n"))
	lines := slices.DeleteFunc(bytes.Split(head, []byte("\n")),
		func(l []byte) bool { return len(bytes.TrimSpace(l)) == 0 })
	if !whole && len(lines) > 1 {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// Keys returns the keys of the object that b begins with, as far as b goes.
func Keys(b []byte) []string {
	if start := bytes.TrimLeft(b, " \t\r\n"); len(start) == 0 || start[0] != '{' {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	var keys []string
	for dec.More() {
		t, err := dec.Token()
		key, ok := t.(string)
		if err != nil || !ok {
			break
		}
		keys = append(keys, key)
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			break
		}
	}
	return keys
}

// LooksLikeJSON tells an object or an array by how it begins. A line of a log may begin with a date,
// a time or a level in brackets, and Python writes its dicts with single quotes.
func LooksLikeJSON(head []byte) bool {
	start := bytes.TrimLeft(head, " \t\r\n")
	if len(start) == 0 || start[0] != '[' {
		return len(start) > 0 && start[0] == '{' && !bytes.HasPrefix(start, []byte("{'"))
	}
	inside := bytes.TrimLeft(start[1:], " \t\r\n")
	if len(inside) == 0 || strings.IndexByte(`{["]`, inside[0]) >= 0 {
		return true
	}
	end := bytes.IndexAny(inside[:min(len(inside), 64)], ",]")
	return end < 0 && len(inside) < 64 || end >= 0 && json.Valid(bytes.TrimSpace(inside[:end]))
}

// First are the first lines of an input that are not blank, and its first records of JSON, at most so
// many of each. The last one of either may be cut. The records may be the lines.
func First(head []byte, most int) (lines, records [][]byte) {
	lines = HeadLines(head)
	lines = lines[:min(len(lines), most)]
	if !LooksLikeJSON(head) {
		return lines, nil
	}

	whole := bytes.TrimSpace(head)
	if list, members := EnvelopeList(whole); list != "" {
		whole = members
	}
	inArray, isArray := bytes.CutPrefix(whole, []byte("["))
	if isArray && listsByLine(whole) || !isArray && len(Keys(lines[0])) > 0 && !spansLines(bytes.TrimSpace(head)) {
		return lines, lines
	}
	for whole = bytes.TrimLeft(inArray, " \t\r\n,"); len(whole) > 0 && len(records) < most; {
		if whole[0] != '{' && !(isArray && whole[0] == '[') {
			break
		}
		n := valueLen(whole)
		records = append(records, whole[:n])
		whole = bytes.TrimLeft(whole[n:], " \t\r\n,")
	}
	return lines, records
}
