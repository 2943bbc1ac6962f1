package datasets

import (
	"cmp"
	"errors"
	"io"
	"math"
	"time"

	"reprise/trace"
)

// Epoch is the instant that relative times count from.
var Epoch = time.Unix(0, 0).UTC()

// Options say how to read a source. The zero Options detect the format and
// tolerate no bad record.
type Options struct {
	Format        string         // name of the format; empty to detect it
	Map           Mapping        // fields of a generic source
	MaxBad        float64        // share of bad records that is tolerated, from 0 to 1
	TimeUnit      string         // unit of numeric times: s, ms, us or ns; empty to detect it
	TZ            *time.Location // zone of times that name none; nil is UTC
	AllowLongSpan bool           // accept times that span more than 60 days
	Capture       trace.Capture  // that all times must be in, or the reading stops; zero for none, see [ParseCapture]
	BlockSize     int            // tokens in a block of a mapped "blocks" field, or of a format that leaves it open
	Rows          string         // what a row holds of its session: full or delta, where the source does not say

	// For a pool of clients, which is expanded to requests.
	Seed      uint64        // of all that is drawn
	PoolStart time.Duration // where in the pool to begin; whole seconds
	PoolSpan  time.Duration // how much of it to expand; 0 is an hour
}

// Info says what was found in a source. After [OpenFiles] it tells the format, the
// block size, the unit of the times, and whether there are times and text; it is
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
	Fields       *Fields  // what was read, and what was not
}

// firstBad is how many bad records are kept with their places.
const firstBad = 10

// A decoder decodes the records of one format.
type decoder interface {
	// decode appends the entries of the next record to dst. It returns io.EOF
	// at the end and a *fault for a record at fault.
	decode(dst []trace.Entry) ([]trace.Entry, error)
}

// A Source yields the entries of a source. It implements [trace.EntryReader].
type Source struct {
	dec     decoder
	name    string    // in errors that are of all files
	file    string    // that is being read
	closer  io.Closer // of the file, when this package opened it
	maxBad  float64
	info    Info
	notes   notes
	fields  *fieldCounter // of the format; nil before that is known
	pending []trace.Entry // entries of a record that did not fit the batch
	err     error
}

// readAs sets the format of the source, and so which fields are read.
func (s *Source) readAs(f Format, o Options) {
	s.info.Format, s.fields = f.Name, newFieldCounter(f, o.Map)
}

// start locates the error of opening, if there was one, and prefetches.
func (s *Source) start(err error) (*Source, error) {
	if err == nil {
		err = s.prefetch()
	}
	if err == nil {
		return s, nil
	}
	var fl *fault
	if errors.As(err, &fl) {
		err = fl.at(s.file)
	}
	if closed := s.Close(); closed != nil {
		err = errors.Join(err, closed)
	}
	return nil, err
}

// prefetch reads the first record that has entries, so that Info tells of the
// times and the text before anything is asked of the source.
func (s *Source) prefetch() error {
	for len(s.pending) == 0 && s.err == nil {
		out, err := s.dec.decode(nil)
		s.settle(err)
		s.pending = out
	}
	if s.err == io.EOF {
		return nil
	}
	return s.err
}

// format finds the format that o asks for or the content shows, and checks that
// the other options suit it.
func (o *Options) format(head []byte) (Format, error) {
	f, err := o.choose(head)
	if err != nil {
		return f, err
	}
	return f, o.suits(f)
}

// suits checks that the options are right, and right for a format.
func (o *Options) suits(f Format) (err error) {
	switch {
	case o.MaxBad < 0 || o.MaxBad > 1 || math.IsNaN(o.MaxBad):
		err = usage("the tolerated share of bad records is not from 0 to 1")
	case o.TimeUnit != "" && unitOf(o.TimeUnit) == 0:
		err = usage("unknown time unit: want s, ms, us or ns")
	case o.TimeUnit != "" && !f.timed:
		err = usage("%s has no numeric times that --time-unit could apply to", f.Name)
	case o.Map != nil && !f.mapped:
		err = usage("%s has fixed fields: --map is for jsonl, csv, parquet and openai-log", f.Name)
	case o.Map == nil && f.mapped && f.detect == nil:
		err = usage("%s needs --map, such as --map input_tokens=usage.prompt_tokens; targets: %s", f.Name, targetNames())
	case o.Rows != "" && o.Rows != rowsFull && o.Rows != rowsDelta:
		err = usage("unknown --rows: want full or delta")
	case o.Rows != "" && !f.rows:
		err = usage("%s leaves no doubt of what its rows hold: --rows is for dynamo and aiperf", f.Name)
	case (o.PoolStart != 0 || o.PoolSpan != 0) && !f.pool:
		err = usage("%s is no pool of clients, of which a part could be expanded", f.Name)
	case o.BlockSize < 0 || !f.sized && (o.BlockSize != 0) != (o.Map["blocks"] != nil):
		err = usage("--map blocks= and the size of these blocks, --source-block-size, belong together")
	}
	return err
}

func (o *Options) choose(head []byte) (Format, error) {
	if o.Format != "" {
		for _, f := range Formats() {
			if f.Name == o.Format {
				return f, nil
			}
		}
		return Format{}, usage("unknown format: want one of %s", formatNames())
	}
	if o.Map != nil {
		return generic(head), nil
	}
	f, err := Detect(head)
	if err != nil {
		return f, refuse(1, 1, err.Error())
	}
	return f, nil
}

// Info returns what was found so far.
func (s *Source) Info() Info {
	info := s.info
	info.FirstBad = append([]*trace.SourceError(nil), info.FirstBad...)
	info.Notes = s.notes.lines()
	if s.fields != nil {
		info.Fields = s.fields.count()
	}
	return info
}

// Empty reports, right after OpenFiles, that no record holds a request: then Info
// cannot tell of times or text.
func (s *Source) Empty() bool { return len(s.pending) == 0 && s.err == io.EOF }

// Read implements [trace.EntryReader]. Errors of the input are of type
// *trace.SourceError or, when there are too many of them, *[BadError].
func (s *Source) Read(batch []trace.Entry) (int, error) {
	n := copy(batch, s.pending)
	s.pending = s.pending[n:]
	for n < len(batch) && s.err == nil {
		out, err := s.dec.decode(batch[:n:len(batch)])
		s.settle(err)
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

// settle counts a record by the error that its decoding returned.
func (s *Source) settle(err error) {
	var f *fault
	switch {
	case err == nil:
		s.info.Records++
	case err == io.EOF:
		if s.err = s.verdict(s.maxBad); s.err == nil {
			s.err = io.EOF
		}
		return
	case !errors.As(err, &f):
		s.err = err
		return
	case f.stop:
		s.err = f.at(s.file)
		return
	default:
		s.info.Bad++
		if len(s.info.FirstBad) < firstBad {
			s.info.FirstBad = append(s.info.FirstBad, f.at(s.file))
		}
	}
	// Early bad records may be made up for by good ones to come, so that before
	// the end only a share that is ten times too high counts as hopeless.
	if s.info.Bad > 0 && s.info.Records+s.info.Bad >= hopelessAfter {
		s.err = s.verdict(10 * s.maxBad)
	}
}

const hopelessAfter = 10_000

func (s *Source) verdict(limit float64) error {
	rows := s.info.Records + s.info.Bad
	if float64(s.info.Bad) <= limit*float64(rows) {
		return nil
	}
	return &BadError{File: cmp.Or(s.name, s.file), Bad: s.info.Bad, Rows: rows, MaxBad: s.maxBad, First: s.info.FirstBad}
}
