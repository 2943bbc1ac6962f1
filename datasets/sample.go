package datasets

import "bytes"

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
	head = bytes.TrimPrefix(head, []byte(byteOrderMark))
	return &sample{bytes: head, isJSON: looksLikeJSON(head)}
}

func (s *sample) parse() *sampleParts {
	if s.parts != nil {
		return s.parts
	}
	s.parts = &sampleParts{}
	lines := headLines(s.bytes)
	for _, line := range lines[:min(len(lines), detectedRecords)] {
		s.parts.lines = append(s.parts.lines, &sampleRecord{raw: line, keys: objectKeys(line)})
	}
	if !s.isJSON {
		return s.parts
	}
	whole := bytes.TrimSpace(s.bytes)
	if list, records := envelopeList(whole); list != "" {
		whole = records
	}
	inArray, isArray := bytes.CutPrefix(whole, []byte("["))
	if !isArray && len(s.parts.lines[0].keys) > 0 && !spansLines(bytes.TrimSpace(s.bytes)) || isArray && listsByLine(whole) {
		s.parts.records = s.parts.lines
		return s.parts
	}
	for whole = bytes.TrimLeft(inArray, " \t\r\n,"); len(whole) > 0 && (whole[0] == '{' || isArray && whole[0] == '[') && len(s.parts.records) < detectedRecords; {
		var end valueScanner
		n, _ := end.valueEnd(whole)
		if i := len(s.parts.records); i < len(s.parts.lines) && bytes.Equal(bytes.TrimSpace(s.parts.lines[i].raw), whole[:n]) {
			s.parts.records = append(s.parts.records, s.parts.lines[i])
		} else {
			s.parts.records = append(s.parts.records, &sampleRecord{raw: whole[:n], keys: objectKeys(whole[:n])})
		}
		whole = bytes.TrimLeft(whole[n:], " \t\r\n,")
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
		if r.value, _, r.whole = decodeJSON(r.raw); !r.whole {
			r.value, _, _ = decodeJSON(closed(r.raw))
		}
	}
	return r.value, r.whole
}
