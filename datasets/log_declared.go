package datasets

import (
	"bufio"
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/row"
	"reprise/datasets/internal/sniff"
	"reprise/datasets/internal/stamp"
	"reprise/datasets/internal/talk"
	"reprise/trace"
	"reprise/trace/ending"
	tokenusage "reprise/trace/usage"
)

// A declaredFormat is a format that one reader reads by what is declared of it: the log of
// a gateway, a platform or a cloud, a record for each call.
type declaredFormat struct {
	name, about, example, tried string

	keys    []string   // paths that a record has, all of them; of CSV columns
	lacks   []string   // keys that no record has
	oneOf   []string   // a record has one of these keys; nil for any
	members [][]string // lists that hold the calls, see [row.Members]
	packed  []string   // JSON in strings

	fields Mapping            // of an entry; the counts of [usageTargets] that stand alone among them
	usage  []string           // usage objects, whose counts fill in what stands alone
	counts tokenusage.Dialect // of these
	spans  spanPaths          // where a record that is a span says which it is
	times  row.Latencies      // where an end or a first token is told by a time
	kinds  [][2]string        // a value, and the kind of call that it is

	only   []condition   // of records that are calls of a model
	drop   []condition   // of records that reached no model
	refuse []condition   // of records that stop the reading
	failed []condition   // of records of calls that failed
	ended  bool          // the time is that of the end, or of the writing after it
	unit   time.Duration // of times that are numbers and do not tell theirs by their size

	request, response string // where the bodies are, in which the paths of the fields are; empty for none

	required []string // targets of every record, which is then read as it stands; nil for others

	formatCode
}

// A condition holds for records that have one of some values at a path.
type condition struct {
	path   string
	values string // separated by spaces, without case; * is any value but 0, false and none
	note   string // of those left out, or why it is refused
}

func (c condition) holds(r row.Row) bool {
	v, ok := r.Value(c.path)
	return ok && c.isOf(v)
}

// isOf reports whether it holds for a value at its path.
func (c condition) isOf(v any) bool {
	if c.values == "*" {
		return !saysNone(v)
	}
	return slices.Contains(strings.Fields(strings.ToLower(c.values)), wordOf(v))
}

// wordOf is a value as a word in small letters, a flag too.
func wordOf(v any) string {
	if flag, isFlag := v.(bool); isFlag {
		return strconv.FormatBool(flag)
	}
	return strings.ToLower(strings.Trim(row.Plain(v), "\" "))
}

// saysNone reports whether a field says that there is none of what it is for, such as an error.
func saysNone(v any) bool {
	_, isObject := v.(map[string]any)
	word := wordOf(v)
	return !isObject && strings.Trim(word, "0-") == "" || slices.Contains(noneWords, word)
}

// saysNoError reports whether a field for errors says that there is none, or that all went well.
func saysNoError(v any) bool {
	fate, ok := ending.Status(wordOf(v))
	return saysNone(v) || ok && fate == ending.OK && wordOf(v) != "true"
}

// isAbsent reports whether a value is how gateways, databases and Python write none into a table.
func isAbsent(v any) bool {
	text, isText := v.(string)
	return isText && slices.Contains([]string{"-", "NULL", "null", "None", "NaN", "nan", "N/A", `\N`}, text)
}

var noneWords = []string{"false", "none", "null", "nil", "nan", "n/a", "no", "no error", "no_error", "noerror"}

// field fails the calls of the records for which the condition holds.
func (c condition) field() field {
	return field{paths: []string{c.path}, target: target{name: "failed", set: func(b *builder, v any) string {
		if c.isOf(v) {
			b.Entry.Status = trace.StatusFailed
		}
		return ""
	}}}
}

// noteEndTimes is said of formats whose records have the time at which they were written.
const noteEndTimes = "this format has the time at the end of a call: arrivals are that less the duration"

// format makes a format of what is declared.
func (d declaredFormat) format() Format {
	reads := mappedFields(d.fields, d.made)
	if d.request == "" {
		reads = wholeTexts(reads)
	}
	reads = append(reads, usageReads(d.fields, d.usageOrigins())...)
	for _, paths := range [][]string{d.times.Start, d.times.First, d.times.End} {
		if len(paths) > 0 {
			paths = slices.Clone(paths)
			for i, path := range paths {
				paths[i] = cmp.Or(d.made[path], path)
			}
			reads = append(reads, fieldAt(strings.Join(paths, "|"), "ttft_ns e2e_ns", ""))
		}
	}
	for _, c := range slices.Concat(d.only, d.drop, d.refuse) {
		reads = append(reads, fieldAt(c.path, "", decides))
	}
	for _, c := range d.failed {
		reads = append(reads, fieldAt(c.path, "status", ""))
	}
	bodies := slices.DeleteFunc([]string{d.request, d.response}, func(path string) bool { return path == "" })
	for _, path := range append(bodies, d.packed...) {
		reads = append(reads, fieldAt(path, "", packed))
	}
	for _, path := range d.whole {
		field := fieldAt(path, "", decides)
		field.whole = true
		reads = append(reads, field)
	}
	if d.spans.id != "" {
		reads = append(reads, fieldAt(d.spans.trace+"|"+d.spans.id+"|"+d.spans.above, "",
			"tells a call that was recorded twice; not kept"))
	}
	for _, names := range d.members {
		reads = append(reads, fieldAt(strings.Join(names, "[]."), "", "the calls, whose fields these are"))
	}
	detectRecord, columns := d.detectRecord(), sniff.Columns(d.keys...)
	return Format{
		Name: d.name, About: d.about, Example: d.example, Tried: d.tried,
		reads: reads, bodies: bodies[:min(len(bodies), 1)], timed: true, dated: true, csv: true, adds: true,
		detect: func(head *sniff.Sample) bool {
			return detectRecord(head) || d.also != nil && d.also(head.Bytes) ||
				len(d.keys) > 0 && columns(head) && !sniff.Any(head.Header(), d.lacks...) &&
					(d.cells == nil || sniff.AnyRow(head, d.cells))
		},
		open: func(in *bufio.Reader, head []byte, o Options, s *Source) (decoder, error) {
			if d.lines != nil && !row.IsParquet(head) && d.also(head) {
				return d.open(row.JSON{Records: d.lines(in, &s.notes), Fields: s.fields},
					row.JSON{Records: d.lines(headLines(head), new(fault.Notes))}, o, s)
			}
			return rowsOpener(d.open).file(in, head, o, s)
		},
	}
}

// usageOrigins are the paths of the usage objects in a record.
func (d declaredFormat) usageOrigins() (paths []string) {
	for _, path := range d.usage {
		first, rest, _ := strings.Cut(path, ".")
		for origin := range strings.SplitSeq(cmp.Or(d.made[first], first), "|") {
			paths = append(paths, strings.Trim(origin+"."+rest, "."))
		}
	}
	return paths
}

// parquet makes the kind of Parquet file that has the format's keys as columns.
func (d declaredFormat) parquet() parquetKind {
	hasKeys := func(has func(column string) bool) bool {
		lacks := func(key string) bool { return !has(key) }
		return len(d.keys) > 0 && d.cells == nil && !slices.ContainsFunc(d.keys, lacks)
	}
	return parquetKind{d.format(), hasKeys, rowsOpener(d.open).parquet}
}

func (d declaredFormat) open(all, first row.Reader, o Options, s *Source) (decoder, error) {
	if d.spans.id != "" {
		all, first = keptRows{all}, keptRows{first}
	}
	if d.members != nil {
		all, first = &row.Members{In: all, Lists: d.members}, &row.Members{In: first, Lists: d.members}
	}
	if d.join != nil {
		all, first = d.join(all, d.fields, &s.notes), d.join(first, d.fields, new(fault.Notes))
	}
	d.fields = o.Map.over(d.fields)
	alone, show, read := d.fields, d.view, d.fields.readBy()
	if d.request != "" {
		alone, show, read = nil, d.bodies, d.fields.withUsage()
		read[bodyAt] = []string{askedChat}
	}
	counts := newUsageReader(d.counts, d.usage, alone, o)
	view := func(r row.Row, tell *fault.Notes) (row.Row, error) { return show(r, counts, tell) }
	calls := func(in row.Reader, known *knownSpans, tell *fault.Notes) row.Reader {
		if d.spans.id == "" {
			return row.Views{In: in, Show: view, Tell: tell}
		}
		return &spanCalls{in: in, show: view, of: d.spans.of, known: known, tell: tell}
	}
	in, ahead := calls(all, &s.spans, &s.notes), calls(first, &knownSpans{}, new(fault.Notes))
	if d.required != nil {
		in, ahead, read = all, first, d.fields
		if table, isCSV := all.(*row.CSV); isCSV {
			read = d.columnsIn(table.Names())
			if err := needColumns(table.Names(), read, nil, o); err != nil {
				return nil, err
			}
		}
	}
	decoder, err := newMappedDecoder(in, ahead, read, o, s)
	if err != nil {
		return nil, err
	}
	require(decoder.fields, d.required...)
	for _, c := range d.failed {
		decoder.fields = append(decoder.fields, c.field())
	}
	if o.Own != nil && len(s.absent) == 0 {
		for target, paths := range d.fields {
			s.absent.mapped(target, target, strings.Join(paths, " | "), target+" in the map of the format", paths)
		}
	}
	decoder.clock.Usual, decoder.clock.Always = d.unit, d.unit != 0
	if d.request == "" {
		decoder.timing = withTimes
	}
	if d.ended {
		s.notes.SayOnce(noteEndTimes)
	}
	return decoder, nil
}

// columnsIn are the targets whose columns a table has, and those that it must have: the format is known by them.
func (d declaredFormat) columnsIn(names []string) Mapping {
	read := maps.Clone(d.fields)
	maps.DeleteFunc(read, func(_ string, paths []string) bool { return !sniff.Any(append(names, d.keys...), paths...) })
	return read
}

// readBy is the mapping by which a view of the declared one is read.
func (m Mapping) readBy() Mapping {
	read := m.withUsage()
	for _, target := range usageTargets {
		if paths := read[target.name]; paths != nil {
			read[target.name] = paths[:1] // gateways write "-" for no count
		}
	}
	for _, name := range []string{"messages", "output"} {
		if m[name] != nil {
			read[name] = []string{"made_" + name}
		}
	}
	if m["messages"] != nil {
		read["prompt"] = []string{"made_prompt"}
	}
	read["kind"], read["time"] = []string{"kind_of_call"}, append([]string{"made_time"}, m["time"]...)
	for _, name := range []string{"ttft", "e2e"} {
		if !m.has(name) {
			read[name+"_ns"] = []string{name}
		}
	}
	return read
}

// detectRecord tells JSON by the paths of its records, and one that is cut by its keys.
func (d declaredFormat) detectRecord() func(head *sniff.Sample) bool {
	return func(head *sniff.Sample) bool {
		return slices.ContainsFunc(head.Records(), func(record *sniff.Record) bool {
			lacks := func(path string) bool {
				first, _, _ := strings.Cut(path, ".")
				return !sniff.Any(record.Keys, path, first)
			}
			if slices.ContainsFunc(d.keys, lacks) || sniff.Any(record.Keys, d.lacks...) ||
				d.oneOf != nil && !sniff.Any(record.Keys, d.oneOf...) {
				return false
			}
			value, whole := record.Value()
			root, _ := value.(map[string]any)
			return (d.match == nil || d.match(row.JSONRow{Root: root, Raw: record.Raw})) &&
				!slices.ContainsFunc(d.keys, func(path string) bool {
					_, found := row.Lookup(value, path)
					return whole && !found
				})
		})
	}
}

// view shows a record as its entry.
func (d declaredFormat) view(r row.Row, counts *usageReader, tell *fault.Notes) (row.Row, error) {
	v := row.NewView(r)
	if in, ok := r.(row.MemberRow); ok {
		v.Made[strings.TrimSuffix(aroundCall, ".")], _ = in.Row.Value("")
	}
	for _, path := range d.packed {
		v.Unpack(path)
	}
	if d.show != nil {
		d.show(v)
	}
	for _, c := range d.refuse {
		if c.holds(v) {
			line, col := v.Place(c.path)
			return nil, fault.Refuse(line, col, c.note)
		}
	}
	for _, c := range d.only {
		if !c.holds(v) {
			tell.Count(c.note)
			return nil, nil
		}
	}
	for _, c := range d.drop {
		if c.holds(v) {
			tell.Count(c.note)
			return nil, nil
		}
	}
	if err := counts.show(v, tell); err != nil {
		return nil, err
	}
	v.PutLatencies(d.times, 0, tell)
	for _, kind := range d.kinds {
		if value, path, ok := row.Find(v, d.fields["kind"]); ok && strings.EqualFold(row.Plain(value), kind[0]) {
			v.Put("kind_of_call", kind[1], path)
		}
	}
	d.text(v)
	if d.ended {
		d.arrival(v)
	}
	if !row.HasAny(v, "tokens.input", "made_messages", "made_prompt") && !row.HasAny(v, d.fields["prompt"]...) {
		code, _, told := row.Find(v, d.fields["status"])
		trial := &builder{}
		if row.HasAny(v, d.fields["error"]...) || told && setStatus(trial, code) == "" && trial.Entry.Status != "ok" {
			tell.Count(noteFailedSpans)
		} else {
			tell.Count(noteEmptyCalls)
		}
		return nil, nil
	}
	return v, nil
}

const noteOtherResponses = "responses that are not JSON, which were not read"

// bodies shows a record that has the body of a request, and perhaps that of its response.
func (d declaredFormat) bodies(r row.Row, counts *usageReader, tell *fault.Notes) (row.Row, error) {
	v := row.NewView(r)
	if !unpackBody(v, d.request) {
		return nil, row.BadAt(r, d.request, "the request is not JSON, plain or as Base64")
	}
	putChatBody(v, d.request, d.request)
	if d.response != "" && !unpackBody(v, d.response) {
		if r.Cut() {
			return nil, row.BadAt(r, d.response, "the response is not JSON")
		}
		tell.Count(noteOtherResponses)
	}
	return v, counts.show(v, tell)
}

// unpackBody decodes a body that is JSON in a string, plain or as Base64.
func unpackBody(v row.View, path string) bool {
	if v.Unpack(path) {
		return true
	}
	text, _ := v.Row.Value(path)
	plain, _ := base64.StdEncoding.DecodeString(row.Plain(text))
	value, _, ok := row.DecodeJSON(plain)
	if ok {
		v.AdmitAt(path, value)
		v.Put(path, value, path)
	}
	return ok
}

// text makes messages or a prompt of what stands for them, and the answer.
func (d declaredFormat) text(v row.View) {
	if input, path, ok := row.Find(v, d.fields["messages"]); ok {
		messages, prompt := talk.ChatOf(input)
		if messages != nil {
			v.Put("made_messages", messages, path)
		} else if prompt != "" {
			v.Put("made_prompt", prompt, path)
		}
	}
	if output, path, ok := row.Find(v, d.fields["output"]); ok {
		if messages, text := talk.ChatOf(output); len(messages) > 0 {
			v.Put("made_output", messages[len(messages)-1], path)
		} else if text != "" {
			v.Put("made_output", text, path)
		}
	}
}

// arrival makes the time of the start of the time of the end.
func (d declaredFormat) arrival(v row.View) {
	end, path, ok := findTime(v, d.fields["time"])
	st, isStamp := stamp.ReadISO(row.Plain(end))
	unit := cmp.Or(d.unit, stamp.EpochUnit(st.Whole))
	if !ok || !isStamp || st.Style == stamp.Numeric && unit == 0 || st.Style != stamp.Numeric && st.Time.IsZero() {
		return
	}
	for name, of := range map[string]time.Duration{"e2e_ms": time.Millisecond, "e2e_s": time.Second} {
		b := &builder{}
		length, _, ok := row.Find(v, d.fields[name])
		if !ok || durationTo(of, func(b *builder) **time.Duration { return &b.Entry.E2E })(b, length) != "" {
			continue
		}
		if st.Style == stamp.Numeric { // in its own unit, as the others are
			at := time.Duration(st.Whole)*unit + time.Duration(st.Nano)/(time.Second/unit) - *b.Entry.E2E
			v.Put("made_time", row.Number(fmt.Sprintf("%d.%09d", at/unit, at%unit*(time.Second/unit))), path)
			continue
		}
		v.Put("made_time", st.Time.Add(-*b.Entry.E2E).Format("2006-01-02T15:04:05.999999999Z07:00"), path)
	}
}
