package datasets

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/record"
	"reprise/datasets/internal/row"
	"reprise/datasets/internal/stamp"
	"reprise/trace"
)

// A mappedDecoder decodes rows by a mapping.
type mappedDecoder struct {
	bodies    []string // where bodies of requests are, see [bodyAt]; nil where their other members are not wanted
	rows      row.Reader
	fields    []field
	times     []string // paths of the time
	notices   []notice
	blockSize int
	clock     stamp.Clock
	timing    timing
	sessions  map[string]lastTurn // of a source without times
	given     bool                // the operator named the field of the input length
	totals    sessionTotals
	counts    *mappedCounts // nil where the operator named none
	entries   int64
	chains    responseChains
	builder   builder // of the current row
	s         *Source
}

// A lastTurn is the latest entry of a session.
type lastTurn struct {
	entry int64
	turn  int32
}

// A field is a mapped target.
type field struct {
	target
	paths    []string
	required bool
	sums     bool // a path may be a sum, see [countTargets]
}

// fields lists the mapped targets in the order in which they are set.
func (m Mapping) fields() []field {
	var fields []field
	for _, t := range targets {
		if m[t.name] != nil && t.set != nil {
			fields = append(fields, field{target: t, paths: m[t.name], sums: isCountTarget(t.name)})
		}
	}
	return fields
}

// A notice is told of records that have a value at a path.
type notice struct{ path, text string }

// timing says whether the records of a source have times.
type timing int

const (
	unknownTiming timing = iota
	withTimes
	withoutTimes
)

// newMappedDecoder reads rows of in; first yields the first of them once more,
// to find the unit of the times.
func newMappedDecoder(in, first row.Reader, m Mapping, o Options, s *Source) (*mappedDecoder, error) {
	d := &mappedDecoder{rows: in, clock: o.clock(), times: m["time"], sessions: map[string]lastTurn{}, s: s}
	if m = s.added.over(m); o.Bodies {
		d.bodies = m[bodyAt]
	}
	d.fields, d.given = m.withErrors().fields(), o.Map["input_tokens"] != nil
	d.counts = newMappedCounts(d.fields, o)
	if o.Map["time"] != nil {
		d.timing, d.clock.Mapped = withTimes, true
	}
	s.info.HasText = m["messages"] != nil || m["prompt"] != nil || m["output"] != nil
	d.setBlockSize(o.BlockSize)
	if d.s.absent == nil { // else this is another file of the source
		d.s.absent = absentFields{}
		d.noteLengths(o.Map)
		for name, paths := range o.Map {
			spec := strings.Join(paths, "|")
			d.s.absent.mapped(name, name, spec, "--map "+name+"="+spec, m.places(name))
			for _, part := range m.summands(name, nil) {
				d.s.absent.mapped(name+"+"+part, name, part, "--map "+name+"="+part, []string{part})
			}
		}
	}
	if d.sampleRows(first) && o.inspect != nil {
		if err := d.s.absent.check(o); err != nil {
			return nil, err
		}
	}
	if m.adds() {
		return nil, errNoPrompt
	}
	return d, nil
}

// noteLengths says which lengths are taken for tokens although their names do not say so.
func (d *mappedDecoder) noteLengths(m Mapping) {
	for _, target := range []string{"input_tokens", "output_tokens"} {
		for _, path := range m.places(target) {
			if w := words(path); share(w, lengthWords) && !share(w, wordsOf("token tokens tok toks")) {
				d.s.notes.SayOnce(fmt.Sprintf("%q is taken for tokens, which its name does not say: text has about 4 "+
					"characters to a token, so compare a few with the tokens of their texts", path))
			}
		}
	}
}

// lengthWords are of names of lengths, of whatever unit.
var lengthWords = wordsOf("length len size chars characters bytes")

var errNoPrompt = fault.Usage("--map needs the prompt or its length: one of messages, prompt and input_tokens")

func (d *mappedDecoder) setBlockSize(size int) {
	d.blockSize = size
	d.s.info.BlockSize, d.s.info.BlocksHashed = size, size > 0
}

func (d *mappedDecoder) mapping() *mappedDecoder { return d }

// require makes every record have some targets, and those only.
func require(fields []field, names ...string) {
	for i := range fields {
		fields[i].required = slices.Contains(names, fields[i].name)
	}
}

// sampleRows takes the times of the first rows, and reports whether there are any. Rows
// at fault are left to decode.
func (d *mappedDecoder) sampleRows(first row.Reader) (some bool) {
	for {
		r, err := first.Next()
		if f, ok := err.(*fault.Fault); ok && !f.Stop {
			continue
		}
		if err != nil {
			return some
		}
		some = true
		d.s.absent.see(r)
		if d.timing == unknownTiming {
			d.timing = withoutTimes
		}
		if v, _, ok := findTime(r, d.times); ok {
			d.timing = withTimes
			if st, f := d.clock.Read(row.Plain(v)); f == nil {
				d.clock.See(st)
			}
		}
	}
}

func (d *mappedDecoder) decode(dst []trace.Entry) ([]trace.Entry, error) {
	r, err := d.rows.Next()
	if err == io.EOF && d.totals.found() {
		d.s.notes.SayOnce(noteTotals)
	}
	if err != nil {
		return dst, err
	}
	d.s.absent.see(r)
	dst, err = d.entry(dst, r)
	if f, ok := err.(*fault.Fault); ok && !f.Stop && r.Cut() {
		return dst, fault.CutOff(f.Line, f.Col, "the last row is not whole")
	}
	return dst, err
}

// entry appends the entry of one row.
func (d *mappedDecoder) entry(dst []trace.Entry, r row.Row) ([]trace.Entry, error) {
	b := &d.builder
	*b = builder{}
	if err := fillFields(b, d.fields, r); err != nil {
		return dst, err
	}
	if err := d.setTime(&b.Entry, r); err != nil {
		return dst, err
	}
	settleEnding(&b.Entry)
	if d.bodies != nil {
		b.Entry.Fields = otherMembers(r, d.bodies)
	}
	if err := d.counts.settle(b, r, &d.s.notes); err != nil {
		return dst, err
	}
	_, fromUsage := r.Value("tokens")
	b.dropZeros(d.given || fromUsage, &d.s.notes)
	b.Entry.InputGiven = d.given && b.Entry.InputTokens != nil
	_, b.ownSystem = r.Value(ownSystem)
	b.ownSystem = b.ownSystem && len(b.Entry.Messages) > 0 && b.Entry.Messages[0].Role == trace.System
	if !d.chains.goesOn(b, &d.s.notes) {
		return dst, nil
	}
	// A call that failed has no usage: no record of it could be better.
	if b.Entry.Status == trace.StatusFailed && b.lengthUnknown() {
		d.s.notes.Count(noteFailedUnknown)
		return dst, nil
	}
	if b.Tokens != nil && b.Entry.SourceBlocks == nil && b.Entry.Messages == nil &&
		int(*b.Entry.InputTokens) == len(b.Tokens) {
		if d.blockSize == 0 {
			d.setBlockSize(idBlock)
		}
		b.Entry.SourceBlocks = blocksOfIDs(b.Tokens, d.blockSize)
	}
	if why := cmp.Or(d.completeBlocks(&b.Entry), b.finish(d.blockSize)); why != "" {
		return dst, row.BadAt(r, "", why)
	}
	// Without times the order of the source is all that tells what an entry follows
	// in its session. With times it is not used: requests of a session may overlap.
	if d.timing == withoutTimes && b.session != "" {
		last, later := d.sessions[b.session]
		if later {
			last.turn++
			b.Entry.Parents = []int64{last.entry}
		}
		b.Entry.Turn = trace.Ptr(last.turn)
		last.entry = d.entries
		d.sessions[b.session] = last
	}
	d.noteEntry(b, r)
	if d.given || fromUsage {
		d.totals.see(b)
	}
	d.chains.remember(b, d.entries)
	d.entries++
	return append(dst, b.Entry), nil
}

// fillFields sets the fields that the row has.
func fillFields(b *builder, fields []field, r row.Row) error {
	for _, f := range fields {
		v, p, ok := f.find(r)
		ok = ok && (!isAbsent(v) || f.name == "prompt" || f.name == "output")
		if !ok && f.required {
			return row.BadAt(r, "", f.name+" is missing")
		}
		if !ok {
			continue
		}
		b.Source = nil
		if w, ok := r.(row.WrittenRow); ok {
			b.Source = func() []byte { return w.Written(p) }
		}
		if why := f.set(b, v); why != "" {
			line, col := r.Place(p)
			return &fault.Fault{Line: line, Col: col, Reason: f.name + ": " + why, Stop: why == row.WhichDecimal}
		}
	}
	return nil
}

// setTime sets the time of the entry, if the source has times.
func (d *mappedDecoder) setTime(e *trace.Entry, r row.Row) error {
	v, p, ok := findTime(r, d.times)
	if d.timing == unknownTiming {
		d.timing = withoutTimes
		if ok {
			d.timing = withTimes
		}
	}
	switch {
	case ok && d.timing == withoutTimes:
		return row.BadAt(r, p, "it has a time, unlike the records before it")
	case !ok && d.timing == withTimes:
		return row.BadAt(r, "", "it has no time")
	case !ok:
		return nil
	}
	if n, open := v.(row.OpenNumber); open && !n.Decimal && !d.clock.HasLayout() {
		line, col := r.Place(p)
		return fault.Refuse(line, col, "time: "+row.WhichDecimal)
	}
	st, f := d.clock.Read(row.Plain(v))
	if f == nil {
		f = d.stampTime(e, st)
	}
	if f != nil {
		f.Line, f.Col = r.Place(p)
		return f
	}
	return nil
}

// stampTime sets the time of the entry by its stamp, which must be in the declared
// capture. The place of the fault is the caller's to fill in.
func (d *mappedDecoder) stampTime(e *trace.Entry, st stamp.Stamp) *fault.Fault {
	t, f := d.instant(st)
	if f != nil {
		return f
	}
	e.Time = t
	return d.clock.InCapture(t)
}

// instant reads a stamp by the clock of the source, which the first one settles.
func (d *mappedDecoder) instant(st stamp.Stamp) (time.Time, *fault.Fault) {
	if !d.clock.Settled() {
		notes, f := d.clock.Settle(st)
		if f != nil {
			return time.Time{}, f
		}
		for _, text := range notes {
			d.s.notes.SayOnce(text)
		}
		d.s.info.HasTimes, d.s.info.TimeUnit = true, d.clock.Unit()
	}
	return d.clock.Instant(st)
}

// noteEntry notes what a reader of the result should know of the entry.
func (d *mappedDecoder) noteEntry(b *builder, r row.Row) {
	info := &d.s.info
	info.HasUsers = info.HasUsers || b.Entry.User != (trace.Text{})
	info.HasSessions = info.HasSessions || b.session != "" || b.previous != ""
	for _, n := range d.notices {
		if _, ok := r.Value(n.path); ok {
			d.s.notes.Count(n.text)
		}
	}
}

// openView decodes rows through a view. The head is read through one of its own,
// so that nothing is told twice.
func openView(all, first row.Reader, show row.Show, m Mapping, o Options, s *Source) (*mappedDecoder, error) {
	return newMappedDecoder(row.Views{In: all, Show: show, Tell: &s.notes},
		row.Views{In: first, Show: show, Tell: new(fault.Notes)}, m, o, s)
}

func openJSONL(in *bufio.Reader, head []byte, m Mapping, o Options, s *Source) (*mappedDecoder, error) {
	first := row.JSON{Records: record.NewJSONLines(headLines(head))}
	return newMappedDecoder(row.JSON{Records: record.NewJSONLines(in), Fields: s.fields}, first, m.dotted(), o, s)
}

func openCSV(in *bufio.Reader, head []byte, m Mapping, o Options, s *Source) (*mappedDecoder, error) {
	rows, first, err := csvInputs(in, head, o, s)
	if err != nil {
		return nil, err
	}
	look, err := rows.Again(head)
	if err != nil {
		return nil, err
	}
	m = m.inColumns(rows.Names())
	packed := packedFields(look, m)
	if err := needColumns(rows.Names(), m, packed, o); err != nil {
		return nil, err
	}
	if look, err = rows.Again(head); err != nil {
		return nil, err
	}
	rows.Admit(s.fields, packed)
	return openMapped(rows, first, look, m, o, s)
}

// openMappedParquet reads the columns of a mapping.
func openMappedParquet(p *row.Parquet, m Mapping, o Options, s *Source) (*mappedDecoder, error) {
	m = m.dotted()
	var paths []string
	for name := range m {
		paths = append(paths, m.places(name)...)
	}
	wanted := func(leaf []string) bool {
		return slices.ContainsFunc(paths, func(path string) bool {
			return path == leaf[0] || strings.HasPrefix(path, leaf[0]+".")
		})
	}
	o.inspect = func() *Inspection { return inspectParquet(p) }
	columns := p.Columns()
	for _, t := range targets {
		if paths := m.places(t.name); o.Map[t.name] != nil && !slices.ContainsFunc(paths, func(path string) bool {
			return slices.ContainsFunc(columns, func(c string) bool {
				return path == c || strings.HasPrefix(path, c+".")
			})
		}) {
			return nil, p.Close(absentColumn(t.name, o.Map[t.name], inspectParquet(p)))
		}
	}
	all, first, err := p.Read(wanted, 1000, s.fields)
	if err != nil {
		return nil, err
	}
	look, err := p.Rows(wanted)
	if err != nil {
		return nil, p.Close(err)
	}
	d, err := openMapped(all, first, look, m, o, s)
	if err != nil {
		return nil, p.Close(err)
	}
	return d, nil
}

// A step is what a format adds to the fields of a mapping: what a row says
// through the rows before it, or in another way than one field at a time.
type step interface {
	// set sets the rest of the entry. It may not rely on the entry being taken.
	set(b *builder, r row.Row) error
	// accepted is told of an entry that was handed out, and of its position.
	accepted(e *trace.Entry, position int64)
}

// A steppedDecoder decodes rows by a mapping and a step.
type steppedDecoder struct {
	*mappedDecoder
	step  step
	gives bool // the step gives a time to rows without one
}

func (d *steppedDecoder) decode(dst []trace.Entry) ([]trace.Entry, error) {
	r, err := d.rows.Next()
	if err != nil {
		return dst, err
	}
	b := &d.builder
	*b = builder{}
	if err := fillFields(b, d.fields, r); err != nil {
		return dst, err
	}
	if _, _, ok := row.Find(r, d.times); ok || !d.gives || d.timing != withTimes {
		if err := d.setTime(&b.Entry, r); err != nil {
			return dst, err
		}
	}
	if err := d.step.set(b, r); err != nil {
		return dst, err
	}
	if why := cmp.Or(d.completeBlocks(&b.Entry), b.finish(d.blockSize)); why != "" {
		return dst, row.BadAt(r, "", why)
	}
	d.noteEntry(b, r)
	d.step.accepted(&b.Entry, d.entries)
	d.entries++
	return append(dst, b.Entry), nil
}

// needColumns checks that a column is there for each mapped target, and only once. Some columns
// hold JSON, in which a target may be.
func needColumns(columns []string, m Mapping, packed []string, o Options) error {
	for _, t := range targets {
		name, n := t.name, 0
		if m[name] == nil {
			continue
		}
		paths := m.places(name)
		for _, column := range columns {
			within := func(path string) bool {
				return strings.HasPrefix(path, column+".") && slices.Contains(packed, column)
			}
			if slices.Contains(paths, column) || slices.ContainsFunc(paths, within) {
				n++
			}
		}
		if n == 0 && o.Map[name] != nil && o.inspect != nil {
			return absentColumn(name, paths, o.inspect())
		}
		if n == 0 {
			return fault.Refuse(1, 1, "the header has no column for "+name)
		}
		if n > len(paths) {
			return fault.Refuse(1, 1, "the header has several columns for "+name)
		}
		for _, part := range m.summands(name, columns) {
			within := func(column string) bool { return strings.HasPrefix(part, column+".") }
			if !slices.Contains(columns, part) && !slices.ContainsFunc(packed, within) && o.inspect != nil {
				return absentColumn(name, []string{part}, o.inspect())
			}
		}
	}
	return nil
}

// A rowsOpener decodes the rows of a file; first has some of the first ones once more.
type rowsOpener func(all, first row.Reader, o Options, s *Source) (decoder, error)

// file opens JSON, CSV or Parquet.
func (open rowsOpener) file(in *bufio.Reader, head []byte, o Options, s *Source) (decoder, error) {
	if row.IsParquet(head) || record.LooksLikeJSON(head) {
		return open.objects(in, head, o, s)
	}
	return open.csv(in, head, o, s)
}

// objects opens JSON or Parquet.
func (open rowsOpener) objects(in *bufio.Reader, head []byte, o Options, s *Source) (decoder, error) {
	if row.IsParquet(head) {
		p, err := row.SpoolParquet(in)
		if err != nil {
			return nil, err
		}
		return open.parquet(p, o, s)
	}
	return open.json(in, head, o, s)
}

// json opens objects of JSON.
func (open rowsOpener) json(in *bufio.Reader, head []byte, o Options, s *Source) (decoder, error) {
	all, first := row.JSONInputs(in, head, s.fields)
	return open(all, first, o, s)
}

// csv opens CSV, of whose columns those are read that the format names.
func (open rowsOpener) csv(in *bufio.Reader, head []byte, o Options, s *Source) (decoder, error) {
	all, first, err := csvInputs(in, head, o, s)
	if err != nil {
		return nil, err
	}
	all.Admit(s.fields, nil)
	return open(all, first, o, s)
}

// parquet opens a Parquet file that was spooled.
func (open rowsOpener) parquet(p *row.Parquet, o Options, s *Source) (decoder, error) {
	all, first, err := p.ReadTable(s.fields)
	if err != nil {
		return nil, p.Close(err)
	}
	d, err := open(all, first, o, s)
	if err != nil {
		return nil, p.Close(err)
	}
	return d, nil
}

// headLines reads the lines that an input begins with, once more.
func headLines(head []byte) *bufio.Reader {
	return bufio.NewReader(bytes.NewReader(bytes.Join(record.HeadLines(head), []byte("\n"))))
}

// csvInputs reads rows of CSV and their first ones in head, and says how they are written.
func csvInputs(in *bufio.Reader, head []byte, o Options, s *Source) (all, first *row.CSV, err error) {
	all, first, how, err := row.CSVInputs(in, head, o.csv())
	if how != "" {
		s.notes.SayOnce("read as CSV with " + how)
	}
	return all, first, err
}
