package datasets

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	"reprise/datasets/internal/input"
	"reprise/datasets/internal/record"
	"reprise/datasets/internal/row"
	"reprise/trace/crash"
	tokenusage "reprise/trace/usage"
)

// Lines are a source whose records stand one a line: lines of JSON, or rows of CSV. They make the
// same source without the records of somebody, or with others in their place, from its bytes on:
// whatever a reader finds out of a file it finds out anew.
type Lines struct {
	files  []File // plain
	o      Options
	csv    bool
	names  []string // paths of what the records are told by
	counts []string // paths of cached tokens, where a mapping names them
	of     map[string][]int
	n      int
}

// ErrNoLines is returned by [NewLines] of a source whose records are no lines.
var ErrNoLines = errors.New("the records of the source are no lines of their own")

// NewLines finds the lines of a source of a format, as [Info] names it. column is user or session:
// by whose values the records are told apart; empty for each record by itself.
func NewLines(files []File, o Options, format, column string) (*Lines, error) {
	l := &Lines{o: o, of: map[string][]int{}}
	fields, ok := ReadFields(format, slices.Sorted(maps.Keys(o.Map)))
	if o.Own != nil {
		fields, ok, l.csv = o.Own.reads, true, o.Own.csv
	}
	for _, f := range Formats() {
		if f.Name == format {
			l.csv = f.csv
			ok = ok && f.openFiles == nil
		}
	}
	for _, f := range fields {
		if slices.Contains(f.Columns, column) {
			l.names = append(l.names, f.Paths...)
		}
	}
	l.names = append(l.names, o.Map.places(column)...)
	l.counts = o.Map.places("cached_tokens")
	if !ok || column != "" && len(l.names) == 0 {
		return nil, ErrNoLines
	}
	for _, f := range files {
		l.files = append(l.files, input.Plain(f))
	}
	for _, f := range l.files {
		if err := l.each(f, func(_ []byte, r row.Row) {
			if r != nil {
				if v, _, ok := row.Find(r, l.names); ok && column != "" {
					name := strings.Clone(row.Plain(v))
					l.of[name] = append(l.of[name], l.n)
				}
				l.n++
			}
		}); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// Records is how many lines are records.
func (l *Lines) Records() int { return l.n }

// Of are the records of a user or a session, by their numbers from 0.
func (l *Lines) Of(name string) []int { return l.of[name] }

// each calls do with the lines of a file. Those that are no records, such as a header, have no row.
func (l *Lines) each(file File, do func(line []byte, r row.Row)) error {
	in, err := file.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	b, head, err := input.Begin(in)
	if err != nil && len(head) == 0 {
		return err
	}
	head = bytes.TrimPrefix(head, []byte(record.ByteOrderMark))
	if l.csv && !record.LooksLikeJSON(head) {
		err := row.CSVLines(b, head, l.o.csv(), do)
		if errors.Is(err, row.ErrNotLines) {
			return ErrNoLines
		}
		return err
	}
	if list, _ := record.EnvelopeList(head); list != "" || len(bytes.TrimSpace(head)) > 0 &&
		bytes.TrimSpace(head)[0] != '{' {
		return ErrNoLines
	}
	lines := record.NewLines(b)
	for {
		raw, err := lines.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		v, _, ok := row.DecodeJSON(bytes.TrimPrefix(raw, []byte(record.ByteOrderMark)))
		object, is := v.(map[string]any)
		if at, _ := lines.Place(0); !ok && at == 1 || ok && !is {
			return ErrNoLines // a value over several lines
		}
		do(append(raw, '\n'), row.JSONRow{Root: object})
	}
}

// alteredLine is the row as [Lines.Altered] has it. Fields may hold JSON, such as whole answers.
func alteredLine(c row.CSVLine, cached []string) ([]byte, error) {
	fields := slices.Clone(c.Fields)
	for i, name := range c.Columns[:min(len(c.Columns), len(fields))] {
		var value any = fields[i]
		if v, _, ok := row.DecodeJSON([]byte(fields[i])); ok && v != nil {
			value = v
		}
		field := map[string]any{name: value}
		alterUsage(field, "", cached)
		switch v := field[name].(type) {
		case nil:
			fields[i] = ""
		case string:
			fields[i] = v
		case json.Number:
			fields[i] = v.String()
		default:
			raw, _ := json.Marshal(v) // it was JSON
			fields[i] = string(raw)
		}
	}

	return c.With(fields)
}

// Without is the source without some records, and with begin before all others of its first file.
func (l *Lines) Without(records []int, begin []byte) []File {
	leave := map[int]bool{}
	for _, i := range records {
		leave[i] = true
	}
	var out []File
	first := 0
	for k, f := range l.files {
		from := first
		_ = l.each(f, func(_ []byte, r row.Row) {
			if r != nil {
				first++
			}
		}) // it was read before
		out = append(out, File{Name: f.Name, Open: func() (io.ReadCloser, error) {
			r, w := io.Pipe()
			go func() {
				defer crash.Caught()
				at, begun := from, k > 0
				err := l.each(f, func(line []byte, r row.Row) {
					if r != nil && !begun {
						_, _ = w.Write(begin)
						begun = true
					}
					if r == nil || !leave[at] {
						_, _ = w.Write(line)
					}
					if r != nil {
						at++
					}
				})
				w.CloseWithError(err)
			}()
			return r, nil
		}})
	}
	return out
}

// Altered are some records as they could be just as well: their cached tokens are more than their
// input, no total tells how the counts add up, and prompts are one short text. Their names and
// times stay.
func (l *Lines) Altered(records []int) (altered []byte, err error) {
	want := map[int]bool{}
	for _, i := range records {
		want[i] = true
	}
	at := 0
	var b bytes.Buffer
	for _, f := range l.files {
		err = errors.Join(err, l.each(f, func(line []byte, r row.Row) {
			if r == nil {
				return
			}
			if at++; !want[at-1] {
				return
			}
			switch r := r.(type) {
			case row.CSVLine:
				row, lineErr := alteredLine(r, l.counts)
				err = errors.Join(err, lineErr)
				b.Write(row)
				return
			case row.JSONRow:
				if line = bytes.TrimRight(line, "\r\n"); r.Root != nil {
					alterUsage(r.Root, "", l.counts)
					line, _ = json.Marshal(r.Root) // it was JSON
				}
			}
			b.Write(append(line, '\n'))
		}))
	}
	return b.Bytes(), err
}

// alteredText stands in place of the texts of a prompt.
const alteredText = "(withheld)"

// alterUsage changes an object in place.
func alterUsage(object map[string]any, above string, cached []string) {
	for _, key := range slices.Sorted(maps.Keys(object)) {
		var is tokenusage.Counts
		switch v := object[key].(type) {
		case map[string]any:
			alterUsage(v, above+key+".", cached)
		case []any:
			for _, m := range v {
				if o, ok := m.(map[string]any); ok {
					alterUsage(o, above+key+".", cached)
				}
			}
		case string:
			if key == "content" || key == "prompt" || key == "text" {
				object[key] = alteredText
			}
		case json.Number:
			if !is.Take([]byte(above+key), 1) {
				is.Take([]byte(key), 1)
			}
			switch {
			case is.Has(tokenusage.Cached) || slices.Contains(cached, above+key):
				object[key] = json.Number("250000")
			case is.Has(tokenusage.Total):
				delete(object, key)
			}
		}
	}
}
