package datasets

import (
	"bytes"

	"reprise/datasets/internal/record"
	"reprise/datasets/internal/row"
)

// A sample is what an input begins with, 64 KiB or all of it. It is taken apart once, by
// what is asked of it first, for all the formats that look at it.
type sample struct {
	bytes   []byte // without a byte order mark
	isJSON  bool   // it begins as an object or an array does
	parts   *sampleParts
	columns *[]string
}

// sampleParts are the beginnings of the first [detectedRecords] lines, and of as many
// records of JSON, which may be the same.
type sampleParts struct{ lines, records []*sampleRecord }

// A sampleRecord is a line or a record of JSON as it stands; the last one may be cut.
type sampleRecord struct {
	raw   []byte
	keys  []string // at its top, up to where it is cut
	value any      // of JSON; of a record that is cut, what is before that
	whole bool     // the value is JSON as it stands
	read  bool     // the value and whole are known
}

func newSample(head []byte) *sample {
	head = bytes.TrimPrefix(head, []byte(record.ByteOrderMark))
	return &sample{bytes: head, isJSON: record.LooksLikeJSON(head)}
}

func (s *sample) parse() *sampleParts {
	if s.parts != nil {
		return s.parts
	}
	s.parts = &sampleParts{}
	lines, records := record.First(s.bytes, detectedRecords)
	for _, line := range lines {
		s.parts.lines = append(s.parts.lines, &sampleRecord{raw: line, keys: record.Keys(line)})
	}
	for i, raw := range records {
		if i < len(lines) && bytes.Equal(bytes.TrimSpace(lines[i]), bytes.TrimSpace(raw)) {
			s.parts.records = append(s.parts.records, s.parts.lines[i])
		} else {
			s.parts.records = append(s.parts.records, &sampleRecord{raw: raw, keys: record.Keys(raw)})
		}
	}
	return s.parts
}

// lines are the first lines that are not blank.
func (s *sample) lines() []*sampleRecord { return s.parse().lines }

// records are the first records of JSON; nil for anything else.
func (s *sample) records() []*sampleRecord { return s.parse().records }

// header returns the names of the columns of CSV; nil for JSON.
func (s *sample) header() []string {
	if s.columns == nil {
		s.columns = new([]string)
		if !s.isJSON {
			*s.columns = headColumns(s.bytes)
		}
	}
	return *s.columns
}

func (r *sampleRecord) has(key string) bool { return anyOf(r.keys, key) }

// json decodes the record; whole is false for one that is cut.
func (r *sampleRecord) json() (value any, whole bool) {
	if !r.read {
		r.read = true
		if r.value, _, r.whole = row.DecodeJSON(r.raw); !r.whole {
			r.value, _, _ = row.DecodeJSON(closed(r.raw))
		}
	}
	return r.value, r.whole
}
