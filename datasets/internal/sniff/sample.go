// Package sniff tells formats by what an input begins with: its lines, its records of JSON and the
// names of its columns.
package sniff

import (
	"bytes"
	"encoding/json"
	"slices"

	"reprise/datasets/internal/record"
	"reprise/datasets/internal/row"
)

// A Sample is what an input begins with, 64 KiB or all of it. It is taken apart once, by
// what is asked of it first, for all the formats that look at it.
type Sample struct {
	Bytes   []byte // without a byte order mark
	IsJSON  bool   // it begins as an object or an array does
	parts   *sampleParts
	columns *[]string
}

// sampleParts are the beginnings of the first [MaxRecords] lines, and of as many
// records of JSON, which may be the same.
type sampleParts struct{ lines, records []*Record }

// A Record is a line or a record of JSON as it stands; the last one may be cut.
type Record struct {
	Raw   []byte
	Keys  []string // at its top, up to where it is cut
	value any      // of JSON; of a record that is cut, what is before that
	whole bool     // the value is JSON as it stands
	read  bool     // the value and whole are known
}

// New takes an input apart by its first bytes.
func New(head []byte) *Sample {
	head = bytes.TrimPrefix(head, []byte(record.ByteOrderMark))
	return &Sample{Bytes: head, IsJSON: record.LooksLikeJSON(head)}
}

func (s *Sample) parse() *sampleParts {
	if s.parts != nil {
		return s.parts
	}
	s.parts = &sampleParts{}
	lines, records := record.First(s.Bytes, MaxRecords)
	for _, line := range lines {
		s.parts.lines = append(s.parts.lines, &Record{Raw: line, Keys: record.Keys(line)})
	}
	for i, raw := range records {
		if i < len(lines) && bytes.Equal(bytes.TrimSpace(lines[i]), bytes.TrimSpace(raw)) {
			s.parts.records = append(s.parts.records, s.parts.lines[i])
		} else {
			s.parts.records = append(s.parts.records, &Record{Raw: raw, Keys: record.Keys(raw)})
		}
	}
	return s.parts
}

// Lines are the first lines that are not blank.
func (s *Sample) Lines() []*Record { return s.parse().lines }

// Records are the first records of JSON; nil for anything else.
func (s *Sample) Records() []*Record { return s.parse().records }

// Header returns the names of the columns of CSV; nil for JSON.
func (s *Sample) Header() []string {
	if s.columns == nil {
		s.columns = new([]string)
		if s.IsJSON {
			return nil
		}
		if rows, err := row.NewCSV(bytes.NewReader(s.Bytes), row.CSVOptions{}); err == nil {
			*s.columns = rows.Names()
		}
	}
	return *s.columns
}

// Has reports whether the record has a key at its top.
func (r *Record) Has(key string) bool { return Any(r.Keys, key) }

// Value decodes the record; whole is false for one that is cut.
func (r *Record) Value() (value any, whole bool) {
	if !r.read {
		r.read = true
		if r.value, _, r.whole = row.DecodeJSON(r.Raw); !r.whole {
			r.value, _, _ = row.DecodeJSON(Closed(r.Raw))
		}
	}
	return r.value, r.whole
}

// Closed completes a record that is cut: open texts, objects and lists are closed.
func Closed(record []byte) []byte {
	var open []byte // what closes, innermost last
	inString, escaped := false, false
	for _, c := range record {
		switch {
		case escaped:
			escaped = false
		case inString && c == '\\':
			escaped = true
		case c == '"':
			inString = !inString
		case inString:
		case c == '{':
			open = append(open, '}')
		case c == '[':
			open = append(open, ']')
		case (c == '}' || c == ']') && len(open) > 0:
			open = open[:len(open)-1]
		}
	}
	slices.Reverse(open)
	record = bytes.ToValidUTF8(record, nil)
	if inString {
		if cut := bytes.LastIndexByte(record[max(0, len(record)-6):], '\\'); cut >= 0 { // an escape that is cut
			record = record[:max(0, len(record)-6)+cut]
		}
		record = append(slices.Clone(record), '"')
	}
	for _, more := range []string{"", "null", ":null"} {
		if whole := slices.Concat(bytes.TrimRight(record, ", \t\r\n"), []byte(more), open); json.Valid(whole) {
			return whole
		}
	}
	return nil
}

// MaxRecords is how many records a format is told from, of those in the first 64
// KiB.
const MaxRecords = 50
