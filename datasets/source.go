package datasets

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/row"
	"reprise/datasets/internal/stamp"
	"reprise/trace"
)

// Epoch is the instant that relative times count from.
var Epoch = stamp.Epoch

// ParseCapture reads the begin and the end of a capture window as people type
// them: two dates, such as those of RFC 3339 or others that logs have, where zone
// is of dates that name none and nil is UTC; two numbers since 1970, whose size
// tells their unit; or two durations, such as 0s and 1h, for a source whose clock
// shows no dates. Errors match [ErrUsage] and quote nothing.
func ParseCapture(begin, end string, zone *time.Location) (trace.Capture, error) {
	return stamp.Capture(begin, end, zone)
}

// csv says how the CSV of a source is written.
func (o Options) csv() row.CSVOptions {
	return row.CSVOptions{Delimiter: o.Delimiter, Decimal: o.Decimal}
}

// clock reads the times of a source by its options.
func (o Options) clock() stamp.Clock {
	return stamp.NewClock(stamp.Options{
		Unit: o.TimeUnit, Layout: o.TimeFormat, Zone: o.TZ, LongSpan: o.AllowLongSpan, Capture: o.Capture,
	})
}

// Options say how to read a source. The zero Options detect the format and
// tolerate no bad record.
type Options struct {
	Format   string  // name of the format; empty to detect it
	Own      *Format // format that a user wrote, see [ReadFormat], in place of a name; nil for none
	Map      Mapping // fields of a generic source
	MaxBad   float64 // share of bad records that is tolerated, from 0 to 1
	TimeUnit string  // unit of numeric times: s, ms, us or ns; empty to detect it
	// layout of dates, in the conversions of strptime or as of package time; empty to detect it
	TimeFormat    string
	Delimiter     string         // between the columns of CSV: a character or "tab"; empty to detect it
	Decimal       string         // what stands before the decimals in CSV: point or comma; empty to detect it
	TZ            *time.Location // zone of times that name none; nil is UTC
	AllowLongSpan bool           // accept times that span more than 60 days
	Capture       trace.Capture  // that all times must be in, or the reading stops; zero for none, see [ParseCapture]
	BlockSize     int            // tokens in a block of a mapped "blocks" field, or of a format that leaves it open
	Rows          string         // what a row holds of its session: full or delta, where the source does not say
	// whether input counts hold the cached tokens, where a format passes on either: yes, no, or empty where each record
	// tells
	CachedInInput string

	// For a pool of clients, which is expanded to requests.
	Seed      uint64        // of all that is drawn
	PoolStart time.Duration // where in the pool to begin; whole seconds
	PoolSpan  time.Duration // how much of it to expand; 0 is an hour

	Bodies bool // fill in [trace.Entry.Fields], which only raw files keep

	Share *Share // the files to read, where several processes share the source; nil for all

	inspect func() *Inspection // looks at the fields of the file at hand; nil before there is one
}

// Info says what was found in a source. After [OpenFiles] it holds the format, the
// block size, the unit of the times, and whether there are times and text. It is
// complete when Read has returned io.EOF.
type Info struct {
	Format       string
	BlockSize    int    // tokens in a full block; 0 when the source has no blocks
	TimeUnit     string // ms, s… as detected or told; "date" for dates; empty without times
	HasTimes     bool
	HasText      bool // it has a place for prompt text
	HasUsers     bool
	HasSessions  bool
	SessionTimes bool  // times count from the start of each session: see [Spread]
	BlocksHashed bool  // the source gives ids of prefix blocks that it hashed itself
	Records, Bad int64 // records read and records skipped; a record may give several entries or none
	FirstBad     []*trace.SourceError
	Notes        []string // what a reader of the result should know
	LeftOut      []string // names of the files that were not read, being of no known format
	Fields       *Fields  // what was read, and what was not
	Unread       []string // names of fields that were not: for the owner of the source alone
}

// firstBad is how many bad records are kept with their places.
const firstBad = 10

// A decoder decodes the records of one format.
type decoder interface {
	// decode appends the entries of the next record to dst. It returns io.EOF
	// at the end and a *fault for a record at fault.
	decode(dst []trace.Entry) ([]trace.Entry, error)
}

// A plainDecoder may know the next record to be a plain entry.
type plainDecoder interface {
	decodePlain(p *trace.PlainEntries) bool // appends it, or leaves the record to decode
}

// A Source yields the entries of a source. It implements [trace.EntryReader].
type Source struct {
	dec     decoder
	name    string    // in errors that concern all files
	file    string    // that is being read
	closer  io.Closer // of the file, when this package opened it
	maxBad  float64
	info    Info
	notes   fault.Notes
	absent  absentFields
	spans   knownSpans
	fields  *row.Fields   // of the format; nil before that is known
	mapped  []string      // targets whose fields a mapping named
	added   Mapping       // beside the fields of a format that takes labels
	pending []trace.Entry // entries of a record that did not fit the batch
	err     error
	ids     sourceIDs
	rest    restIDs      // whether these cover the rest of a prompt
	fresh   freshIDs     // for blocks without an id
	share   *sharedChain // nil where all files are read
}

// readAs sets the format of the source, and so which fields are read.
func (s *Source) readAs(f Format, o Options) {
	s.info.Format = f.Name
	s.fields, s.mapped = newFieldCounter(f, o.Map)
	if s.added = nil; f.labels {
		s.added = o.Map.dotted()
	}
	if o.Bodies {
		for _, path := range f.bodies {
			s.fields.KnowMapped(path)
		}
	}
	if f.Tried == fromDocumentation {
		s.notes.SayOnce("the reader of this format is " + fromDocumentation +
			", not yet seen on a real file: check the totals")
	}
}

// start locates the error of opening, if there was one. Otherwise it reads the
// first record that has entries, so that Info knows about the times and the text
// before anything is asked of the source.
func (s *Source) start(err error) (*Source, error) {
	for err == nil && len(s.pending) == 0 && s.err == nil {
		s.pending, _ = s.decode(nil) // s.err has what went wrong
	}
	if err == nil && s.err != io.EOF {
		err = s.err
	}
	if err == nil {
		return s, nil
	}
	var fl *fault.Fault
	if errors.As(err, &fl) {
		err = fl.At(s.file)
	}
	var fields *FieldsError
	if errors.As(err, &fields) {
		fields.Inspection.File = s.file
	}
	if closed := s.Close(); closed != nil {
		err = errors.Join(err, closed)
	}
	return nil, err
}

// Info returns what was found so far.
func (s *Source) Info() Info {
	info := s.info
	info.FirstBad = append([]*trace.SourceError(nil), info.FirstBad...)
	info.Notes = s.notes.Lines()
	if s.err == io.EOF {
		info.Notes = append(append(info.Notes, s.ids.notes()...), s.absent.notes()...)
	}
	if s.fields != nil {
		info.Fields = &Fields{Format: info.Format, Mapped: s.mapped}
		info.Fields.Dropped, info.Fields.Kinds, info.Fields.More = s.fields.Dropped()
		info.Unread = s.fields.Names()
	}
	return info
}

// Empty reports, right after OpenFiles, that no record holds a request: then Info
// knows nothing about times or text.
func (s *Source) Empty() bool { return len(s.pending) == 0 && s.err == io.EOF }

// Read implements [trace.EntryReader]. Errors of the input have the type
// *trace.SourceError. When too many records are bad, one error wraps the places of
// the first ones.
func (s *Source) Read(batch []trace.Entry) (int, error) {
	n := copy(batch, s.pending)
	s.pending = s.pending[n:]
	for n < len(batch) && s.err == nil {
		out, err := s.decode(batch[:n:len(batch)])
		if err != nil {
			continue
		}
		m := copy(batch[n:], out[n:]) // onto itself, unless append moved to a larger array
		s.pending = append([]trace.Entry(nil), out[n+m:]...)
		n += m
	}
	if len(s.pending) > 0 {
		return n, nil
	}
	return n, s.err
}

// ReadPlain implements [trace.PlainReader].
func (s *Source) ReadPlain(p *trace.PlainEntries, most int) {
	d, ok := s.dec.(plainDecoder)
	for ok && p.Len() < most && len(s.pending) == 0 && s.err == nil && d.decodePlain(p) {
		s.settle(nil)
		if i := p.Len() - 1; s.info.BlocksHashed {
			s.ids.see(p.IDsOf(i), p.Input[i], s.info.BlockSize)
		}
	}
}

// decode appends the entries of the next record to dst, and settles how their requests ended.
func (s *Source) decode(dst []trace.Entry) ([]trace.Entry, error) {
	out, err := s.dec.decode(dst)
	s.settle(err)
	for i := len(dst); i < len(out); i++ {
		settleEnding(&out[i])
		if e := &out[i]; s.info.BlocksHashed && e.InputTokens != nil {
			s.ids.see(e.SourceBlocks, *e.InputTokens, s.info.BlockSize)
		}
	}
	return out, err
}

// settle counts a record by the error that its decoding returned.
func (s *Source) settle(err error) {
	if err == nil {
		if s.info.Records++; s.info.Bad == 0 {
			return
		}
	}
	var f *fault.Fault
	switch {
	case err == nil:
	case err == io.EOF:
		if s.err = s.verdict(s.maxBad, true); s.err == nil {
			s.err = io.EOF
			if err := s.ids.refuse(); err != nil {
				s.err = fmt.Errorf("%s: %w", cmp.Or(s.name, s.file), err)
			}
		}
		return
	case !errors.As(err, &f):
		s.err = err
		return
	case f.Stop:
		s.err = f.At(s.file)
		return
	default:
		s.info.Bad++
		if len(s.info.FirstBad) < firstBad {
			s.info.FirstBad = append(s.info.FirstBad, f.At(s.file))
		}
	}
	// Early bad records may be made up for by good ones to come, so that before
	// the end only a share that is ten times too high counts as hopeless.
	if s.info.Bad > 0 && s.info.Records+s.info.Bad >= hopelessAfter {
		s.err = s.verdict(10*s.maxBad, false)
	}
}

const hopelessAfter = 10_000

func (s *Source) verdict(limit float64, whole bool) error {
	rows := s.info.Records + s.info.Bad
	if float64(s.info.Bad) <= limit*float64(rows) {
		return nil
	}
	return &tooManyBad{File: cmp.Or(s.name, s.file), Bad: s.info.Bad, Rows: rows, MaxBad: s.maxBad, Whole: whole,
		First: s.info.FirstBad}
}

const noteWithoutJSON = "lines without JSON were left out"

// Close closes the file that is being read, if OpenFiles opened it. It need not
// be called at the end of the source.
func (s *Source) Close() error {
	if s.closer == nil {
		return nil
	}
	if log, ok := s.closer.(interface{ WithoutJSON() int64 }); ok && log.WithoutJSON() > 0 {
		s.notes.Add(noteWithoutJSON, log.WithoutJSON())
	}
	err := s.closer.Close()
	s.closer = nil
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return nil // the reading has said so
	}
	return err
}

// ErrUsage matches, by errors.Is, the errors of [OpenFiles] and [ParseMapping] that lie
// in what was asked for rather than in the input.
var ErrUsage = fault.ErrUsage

// A tooManyBad says that more records were bad than is tolerated.
type tooManyBad struct {
	File      string
	Bad, Rows int64   // of the records so far
	MaxBad    float64 // the tolerated share
	Whole     bool    // all of the source has been read
	First     []*trace.SourceError
}

// Error names the first places, and the share to tolerate that leaves the bad records out.
func (e *tooManyBad) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d of %d records are bad, more than the tolerated %.3g %%:", e.File, e.Bad,
		e.Rows, 100*e.MaxBad)
	for _, f := range e.First[:min(3, len(e.First))] {
		b.WriteString("\n  " + f.Error())
	}
	if e.Bad > 3 {
		b.WriteString("\n  …")
	}
	share := math.Ceil(100*float64(e.Bad)/float64(e.Rows)) / 100
	switch {
	case e.Bad == e.Rows:
	case e.Whole:
		fmt.Fprintf(&b, "\nMend them, or import the other %d without them: --max-bad %g", e.Rows-e.Bad, share)
	default:
		fmt.Fprintf(&b, "\nThe rest was not read. Mend them, or import without them: --max-bad %g, if their share "+
			"stays the same", share)
	}
	return b.String()
}

// Unwrap returns the first places.
func (e *tooManyBad) Unwrap() []error {
	errs := make([]error, len(e.First))
	for i, f := range e.First {
		errs[i] = f
	}
	return errs
}
