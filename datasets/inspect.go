package datasets

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/input"
	"reprise/datasets/internal/record"
	"reprise/datasets/internal/row"
	"reprise/datasets/internal/stamp"
	"reprise/datasets/internal/talk"
	"reprise/trace"
	"reprise/trace/ending"
)

// An Inspection says which fields the first records of a source have, and how to
// import it. It holds names of fields, and of their values numbers and dates alone:
// no text.
type Inspection struct {
	File      string           `json:"file"`
	Format    string           `json:"format"`    // that is recognised by content; empty for none
	ToldBy    []string         `json:"told_by"`   // the keys or columns that its table names
	Container string           `json:"container"` // jsonl, csv or parquet; empty where it is none of them
	Records   int              `json:"records"`   // that were looked at
	Whole     bool             `json:"all"`       // they are all there are
	Fields    []InspectedField `json:"fields"`    // in the order in which they appear
	// the first row of CSV does not look like names, and is not shown; where it is a record, the fields are positions
	Nameless bool     `json:"no_header"`
	Flags    []string `json:"flags"`   // of reprise import, proposed; with Missing they are not enough
	Missing  string   `json:"missing"` // what no field looks like, without which there is no import
	// field of the only object, as APIs return it, that lists the records; empty for none
	List    string   `json:"list"`
	Final   bool     `json:"-"` // no flag makes up for what is missing
	ends    string   // the field with the times at which requests ended, where no other has times
	columns []string // of CSV and Parquet
}

// An InspectedField is a field of a source.
type InspectedField struct {
	Path    string `json:"path"`    // as --map takes it; [] stands for every member of a list
	Type    string `json:"type"`    // see the constants
	Present int    `json:"present"` // records that have it, neither null nor empty
	Values  string `json:"values"`  // a range of numbers, dates or lengths; never text

	stats fieldStats
}

// Types of inspected fields.
const (
	dateType     = "date"
	wholeType    = "whole number"
	decimalType  = "number"
	flagType     = "true or false"
	textType     = "text"
	messagesType = "messages" // a list of objects with role and content, or that as JSON in a string
	listType     = "list"
	mixedType    = "mixed"
)

// inspectedFields bounds the fields that are counted apart: a key may itself be data.
const inspectedFields = 500

// fieldStats gather what the values of a field are.
type fieldStats struct {
	n                                          int // values
	dates, whole, numbers, flags, texts, lists int
	messages                                   int   // of texts or lists
	ids                                        int   // of lists: those of whole numbers
	fates                                      int   // of texts: those that say what became of a request
	answers                                    int   // of texts: those that name the assistant
	days, clocks                               int   // of texts: days without a time, and times without a day
	midnights                                  int   // of dates: those at the begin of a day
	nones                                      int   // of texts: those that say that there is no error
	sizes                                      []int // characters of texts, and numbers
	open                                       int   // of numbers: those that have decimals or thousands
	commas                                     bool  // the mark in them is a comma
	fractions                                  bool
	min, max, sum                              float64
	first, last                                time.Time
	shortest, longest                          int // of texts in characters, or of lists
	record                                     int // that had it last
}

// A FieldsError is wrapped by the errors of [OpenFiles] for a source whose fields are
// not those that are asked for. Its text does not name fields: they are the source's own.
type FieldsError struct {
	Inspection *Inspection
	Absent     string // the field that a mapping names and no record has; empty where no format fits
}

// Error does not name fields.
func (e *FieldsError) Error() string { return "the fields differ from the ones asked for" }

// Nearest is the field that the absent one may be a misspelling of, or "".
func (e *FieldsError) Nearest() string {
	if e.Absent == "" {
		return ""
	}
	paths := make([]string, len(e.Inspection.Fields))
	for i, f := range e.Inspection.Fields {
		paths[i] = f.Path
	}
	return nearestName(e.Absent, paths)
}

// Inspect looks at the first records of the first file that has a known format, or else
// of the first that is not empty. Options may
// name the delimiter of CSV. Errors are those of [OpenFiles].
func Inspect(files []File, o Options) (*Inspection, error) {
	if len(files) > 1 {
		files = files[max(0, slices.IndexFunc(files, func(f File) bool { return hasFormat(f, false) })):]
	}
	for i, f := range files {
		r, err := input.Plain(f).Open()
		if err != nil {
			return nil, err
		}
		in, head, err := input.Begin(r)
		if len(head) == 0 && err == nil && i < len(files)-1 {
			_ = r.Close()
			continue
		}
		var found *Inspection
		if err == nil {
			found, err = inspectInput(in, head, o)
		}
		_ = r.Close()
		var fl *fault.Fault
		if errors.As(err, &fl) {
			return nil, fl.At(f.Name)
		}
		if err != nil {
			return nil, err
		}
		found.File = f.Name
		return found, nil
	}
	return nil, fault.Usage("there is no file to read")
}

// inspectInput inspects an input that begins with head.
func inspectInput(in *bufio.Reader, head []byte, o Options) (*Inspection, error) {
	if row.IsParquet(head) {
		p, err := row.SpoolParquet(in)
		if err != nil {
			return nil, err
		}
		found := inspectParquet(p)
		if kind := kindOf(p); kind != nil {
			found.Format, found.Flags, found.Missing = kind.format.Name, nil, ""
		}
		return found, p.Close(nil)
	}
	f, err := detectKeyed(head)
	found := inspectHead(head, o)
	var either ambiguousError
	switch {
	case err == nil:
		found.Format, found.ToldBy, found.Flags, found.Missing = f.Name, f.keys, nil, ""
	case errors.As(err, &either):
		found.Flags, found.Missing = []string{"--format", either.a.Name}, ""
	}
	if len(bytes.TrimSpace(head)) == 0 {
		return nil, fault.Refuse(1, 1, nothingIn(head))
	}
	return found, nil
}

// inspectHead inspects JSON or CSV by its beginning.
func inspectHead(head []byte, o Options) *Inspection {
	found := &Inspection{Container: "csv", Whole: len(head) < record.HeadBytes}
	var in row.Reader
	if record.LooksLikeJSON(head) {
		found.Container = "jsonl"
		in = row.JSON{Records: record.NewJSON(bufio.NewReader(bytes.NewReader(head)), head)}
	} else if found.Missing = notRequests(head); found.Missing != "" {
		found.Container = ""
		return found
	} else {
		rows, err := row.NewCSV(bytes.NewReader(head), o.csv())
		if err != nil || !utf8.Valid(head[:min(len(head), 1000)]) && bytes.IndexByte(head, 0) >= 0 {
			found.Container = ""
			found.Missing = "it is neither JSON nor CSV nor Parquet"
			if f, ok := err.(*fault.Fault); ok && bytes.IndexByte(head, 0) < 0 {
				found.Missing = fmt.Sprintf("it is neither JSON nor Parquet, and as CSV it has a fault at line %d, "+
					"column %d: %s", f.Line, f.Col, f.Reason)
			}
			return found
		}
		in, found.columns, found.Nameless = rows, slices.Clone(rows.Names()), rows.Nameless
		for _, column := range found.columns { // a sentence is no name
			found.Nameless = found.Nameless || len(column) > 64 || strings.ContainsAny(column, "\n\r{}?!") ||
				len(strings.Fields(column)) > 6 || len(found.columns) == 1 && len(strings.Fields(column)) > 2
		}
		if found.Nameless && !rows.Nameless {
			found.columns = nil
			found.Missing = "the first row does not look like names of columns: write a header above it"
			return found
		}
		if o.Delimiter != "" {
			found.Flags = append(found.Flags, "--delimiter", o.Delimiter)
		}
	}
	found.gather(in)
	found.propose()
	if found.Records == 0 && len(head) < record.HeadBytes && found.Container == "jsonl" {
		found.Missing = "none of its records is whole JSON"
	} else if found.Records == 0 && !found.Whole {
		found.Missing = "its first record is longer than the 64 KiB that are looked at, so that its fields are not " +
			"known: name them with --map"
	} else if found.Nameless && found.Missing != "" {
		found.Missing = "its first row is no header, so its columns are named by their position, and which is the " +
			"prompt or its number of tokens is not known"
	}
	if slices.ContainsFunc(found.Fields, func(f InspectedField) bool { return f.Path == "data.result[].values" }) {
		found.Final, found.Missing = true, "it is an answer of Loki's API: make a line of each entry, with jq -c '.data.result[] "+
			"| .stream as $s | .values[] | {labels: $s, timestamp: .[0], line: .[1]}', or query with logcli -o jsonl"
	} else if list := found.envelope(head); list != "" && len(found.Flags) == 0 {
		found.List, found.Missing = list, "its records are in the list "+list
	}
	return found
}

// envelope returns the name of a list that holds the records of a single object, as
// APIs return them; "" for none.
func (i *Inspection) envelope(head []byte) string {
	if i.Records > 1 || i.Container != "jsonl" {
		return ""
	}
	keys := record.Keys(bytes.TrimSpace(head))
	if i.Records == 0 && !i.Whole && len(keys) > 0 { // the list goes on after what is looked at
		last := keys[len(keys)-1]
		_, value, _ := bytes.Cut(head, []byte(`"`+last+`"`))
		if bytes.HasPrefix(bytes.TrimLeft(value, ": \t\r\n"), []byte("[")) {
			return plainKey(last)
		}
		return ""
	}
	for _, f := range i.Fields {
		list, below, ok := strings.Cut(f.Path, row.ListMembers+".")
		if ok && !strings.Contains(below, row.ListMembers+".") && slices.Contains(keys, strings.Split(list, ".")[0]) {
			return plainKey(list)
		}
	}
	return ""
}

// plainKey is a key, or several with dots between them, that needs no quotes in jq, else "".
func plainKey(key string) string {
	if strings.Trim(key, ".abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" {
		return ""
	}
	return key
}

// inspectParquet looks at the first rows of a Parquet file.
func inspectParquet(p *row.Parquet) *Inspection {
	found := &Inspection{Container: "parquet", Whole: p.Len() <= row.SniffedRows, columns: p.Columns()}
	if in, err := p.Rows(func([]string) bool { return true }); err == nil { // else there are names alone
		found.gather(&row.First{Reader: in, Left: row.SniffedRows})
	}
	found.propose()
	return found
}

// gather tells the fields of some rows.
func (i *Inspection) gather(in row.Reader) {
	at := map[string]int{}
	for i.Records < row.SniffedRows {
		r, err := in.Next()
		if f, ok := err.(*fault.Fault); ok && !f.Stop {
			continue
		}
		if err != nil {
			i.Whole = i.Whole && err == io.EOF
			break
		}
		i.Records++
		switch r := r.(type) {
		case row.JSONRow:
			for _, key := range record.Keys(r.Raw) {
				if v, ok := r.Root[key]; ok {
					i.value(at, key, v, 0)
				}
			}
		case row.ParquetRow:
			for _, column := range i.columns {
				i.value(at, column, r.Root[column], 0)
			}
		case *row.CSV:
			for _, column := range r.Names() {
				v, _ := r.Value(column)
				i.value(at, column, v, 0)
			}
		}
	}
	for k := range i.Fields {
		f := &i.Fields[k]
		f.Type, f.Values = f.stats.describe()
	}
}

// value gathers a value and what is below it.
func (i *Inspection) value(at map[string]int, path string, v any, depth int) {
	switch v := v.(type) {
	case nil:
		i.field(at, path) // so that its place is kept
		return
	case string:
		if isAbsent(v) {
			i.field(at, path)
			return
		}
	case map[string]any:
		if depth < 6 {
			for _, key := range slices.Sorted(maps.Keys(v)) {
				i.value(at, path+"."+key, v[key], depth+1)
			}
		}
		return
	case []any:
		if !talk.AreMessages(v) && depth < 6 && len(v) > 0 {
			if _, ok := v[0].(map[string]any); ok {
				for _, member := range v[:min(len(v), 20)] {
					i.value(at, path+row.ListMembers, member, depth+1)
				}
				return
			}
		}
	}
	if inside, isObject := packedJSON(v).(map[string]any); isObject && depth < 6 {
		i.value(at, path, inside, depth+1)
		return
	}
	if f := i.field(at, path); f != nil {
		if f.stats.record != i.Records {
			f.Present++
		}
		f.stats.record = i.Records
		f.stats.gather(v)
	}
}

func (i *Inspection) field(at map[string]int, path string) *InspectedField {
	k, ok := at[path]
	if !ok {
		if len(i.Fields) == inspectedFields || len(path) > row.MaxKey {
			return nil
		}
		k = len(i.Fields)
		at[path] = k
		i.Fields = append(i.Fields, InspectedField{Path: path})
	}
	return &i.Fields[k]
}

// gather counts one value.
func (s *fieldStats) gather(v any) {
	s.n++
	size := func(n int) {
		if s.longest = max(s.longest, n); s.shortest == 0 || n < s.shortest {
			s.shortest = n
		}
	}
	switch v := v.(type) {
	case bool:
		s.flags++
	case row.Number:
		s.number(string(v))
	case row.OpenNumber:
		s.open, s.commas = s.open+1, strings.Contains(v.Text, ",")
		s.number(strings.Replace(v.Text, ",", ".", 1))
	case []any:
		s.lists++
		size(len(v))
		if talk.AreMessages(v) {
			s.messages++
		}
		if _, ok := talk.TokenIDs(v); ok && len(v) > 0 {
			s.ids++
		}
	case string:
		if _, _, ok := stamp.Decimal(strings.TrimSpace(v)); ok {
			s.number(strings.TrimSpace(v))
			return
		}
		if st, ok := stamp.Read(v); ok {
			s.dates++
			t := st.Time
			if t.IsZero() {
				t = st.Swapped
			}
			if t.Equal(t.Truncate(24 * time.Hour)) {
				s.midnights++
			}
			if s.first.IsZero() || t.Before(s.first) {
				s.first = t
			}
			if t.After(s.last) {
				s.last = t
			}
			return
		}
		if stamp.LacksYear(v) {
			s.dates++ // which cannot be imported, and import says why
			return
		}
		if _, err := strconv.ParseBool(strings.ToLower(v)); err == nil {
			s.flags++
			return
		}
		s.texts++
		if _, isDay := stamp.Read(v + " 00:00"); isDay {
			s.days++
		} else if _, isClock := stamp.Read("2026-01-02 " + v); isClock {
			s.clocks++
		}
		if role, _ := trace.RoleOf(v); role == trace.Assistant {
			s.answers++
		}
		if fate, ok := ending.Status(v); ok && (fate == ending.OK || fate == ending.Failed || fate == ending.WasCut) {
			s.fates++
		}
		if saysNoError(v) {
			s.nones++
		}
		s.sizes = append(s.sizes, utf8.RuneCountInString(v))
		size(utf8.RuneCountInString(v))
		if start := strings.TrimSpace(v); strings.HasPrefix(start, "[") {
			if list, _, ok := row.DecodeJSON([]byte(v)); ok && talk.AreMessages(list) {
				s.messages++
			}
		}
	}
}

func (s *fieldStats) number(digits string) {
	f, _ := strconv.ParseFloat(digits, 64)
	if s.numbers == 0 || f < s.min {
		s.min = f
	}
	if s.numbers == 0 || f > s.max {
		s.max = f
	}
	s.numbers++
	s.sum += f
	s.sizes = append(s.sizes, int(f))
	if f == math.Trunc(f) {
		s.whole++
	}
	s.fractions = s.fractions || f != math.Trunc(f)
}

// describe returns the type of a field, and a range of its values.
func (s *fieldStats) describe() (kind, values string) {
	span := func(unit string) string {
		switch {
		case s.longest == 1:
			return "1 " + unit
		case s.shortest == s.longest:
			return fmt.Sprintf("%d %ss", s.longest, unit)
		}
		return fmt.Sprintf("%d to %d %ss", s.shortest, s.longest, unit)
	}
	switch s.n {
	case 0:
		return "always null", ""
	case s.messages:
		return messagesType, ""
	case s.lists:
		return listType, span("member")
	case s.flags:
		return flagType, ""
	case s.dates:
		if s.first.IsZero() {
			return dateType, "without a year"
		}
		const day, clock = "2006-01-02", " 15:04"
		values = s.first.Format(day + clock)
		switch {
		case s.first.Format(day) != s.last.Format(day):
			values += " to " + s.last.Format(day+clock)
		case s.first.Format(clock) != s.last.Format(clock):
			values += " to" + s.last.Format(clock)
		}
		return dateType, values
	case s.open:
		return decimalType, "its mark is of decimals or of thousands"
	case s.numbers:
		if s.open > 0 {
			return decimalType, "the mark of some is of decimals or of thousands"
		}
		kind = wholeType
		if s.fractions {
			kind = decimalType
		}
		values = strconv.FormatFloat(s.min, 'f', -1, 64)
		if s.max != s.min {
			values += " to " + strconv.FormatFloat(s.max, 'f', -1, 64)
		}
		return kind, values
	case s.texts + s.messages, s.texts:
		return textType, span("character")
	}
	if s.texts > 0 && s.lists == 0 {
		return textType, "" // some of which look like numbers or dates
	}
	return mixedType, ""
}

// refuseFields is a fault of a source whose fields are others than those asked for.
func refuseFields(reason string, fields *FieldsError) *fault.Fault {
	return &fault.Fault{Line: 1, Col: 1, Reason: reason, Err: fields, Stop: true}
}
