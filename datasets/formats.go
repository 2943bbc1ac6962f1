package datasets

import (
	"bufio"
	"bytes"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/record"
	"reprise/datasets/internal/row"
	"reprise/datasets/internal/sniff"
	"reprise/datasets/internal/stamp"
)

// Formats lists the formats. Of two that fit an input alike the earlier one is taken.
func Formats() []Format {
	formatList.once.Do(func() { formatList.all = listFormats() })
	return slices.Clone(formatList.all)
}

// formatList is made once: the tables of all formats take a millisecond.
var formatList struct {
	once sync.Once
	all  []Format
}

func listFormats() []Format {
	var declared []Format
	for _, d := range declaredFormats() {
		declared = append(declared, d.format())
	}
	return slices.Concat([]Format{
		serveGenFormat(),
		// Session files of agents.
		claudeFormat(), codexFormat(), geminiFormat(), qwenFormat(), clineFormat(), openCodeFormat(), openHandsFormat(),
		sweAgentFormat(), aiderFormat(),
		// Traces. A dialect comes before the format whose fields it extends.
		dynamoRequestsFormat(), aiperfFormat(), dynamoFormat(), bailianFormat(), mooncakeFormat(), wekaFormat(),
		trtllmFormat(), rolloutsFormat(), trieFormat(),
		// Logs of gateways, engines and observers.
		vllmLogFormat(), batchFormat(), otelFormat(), litellmLogFormat(), langfuseFormat(), litellmSpendFormat(),
	}, declared, []Format{
		// Conversations, and the workloads of other tools.
		shareGPTFormat(), chatsFormat(), wildChatFormat(), lmsysFormat(), basetenFormat(), parquetFormat(),
		traceLabFormat(), traceLabSessionsFormat(), blisFormat(),
		// What many files may look like, and formats that must be asked for.
		openAILogFormat(), jsonlFormat(), csvFormat(),
	})
}

func jsonlFormat() Format {
	return Format{
		timed: true, mapped: true, dated: true,
		open: func(in *bufio.Reader, head []byte, o Options, s *Source) (decoder, error) {
			all, first := row.JSONInputs(in, head, s.fields)
			look := row.JSON{Records: record.NewJSON(bufio.NewReader(bytes.NewReader(head)), head)}
			return openMapped(all, first, look, o.Map.dotted(), o, s)
		},
	}.described("jsonl")
}

func csvFormat() Format {
	return Format{
		timed: true, mapped: true, dated: true, csv: true,
		open: func(in *bufio.Reader, head []byte, o Options, s *Source) (decoder, error) {
			return openCSV(in, head, o.Map, o, s)
		},
	}.described("csv")
}

// parquetFormat reads Parquet files of any schema, whoever wrote them. A file
// of a kind that has a format of its own is read as that, unless a mapping says
// otherwise.
//
// The footer of Parquet is its last part, so that the input is spooled to a
// private temporary file first. Columns that are not wanted stay there unread;
// of the others memory holds a page each.
func parquetFormat() Format {
	return Format{
		timed: true, mapped: true, dated: true,
		detect: func(head *sniff.Sample) bool { return row.IsParquet(head.Bytes) },
		open:   openParquet,
	}.described("parquet")
}

// openParquet reads a Parquet file by the mapping or, without one, in the format
// that its columns show.
func openParquet(in *bufio.Reader, head []byte, o Options, s *Source) (decoder, error) {
	if !row.IsParquet(head) {
		return nil, fault.Refuse(1, 1, "it is not a Parquet file")
	}
	p, err := row.SpoolParquet(in)
	if err != nil {
		return nil, err
	}
	kind := kindOf(p)
	if o.Map != nil && (kind == nil || !o.Map.fits(kind.format)) {
		return openMappedParquet(p, o.Map, o, s)
	}
	if kind != nil {
		s.readAs(kind.format, o)
		return kind.open(p, o, s)
	}
	return nil, p.Close(refuseFields(errUnrecognised.Error(), &FieldsError{Inspection: inspectParquet(p)}))
}

// A parquetKind is a format whose files may be Parquet.
type parquetKind struct {
	format Format
	detect func(has func(column string) bool) bool
	open   func(p *row.Parquet, o Options, s *Source) (decoder, error)
}

// kindOf recognises a file by its columns; nil for none.
func kindOf(p *row.Parquet) *parquetKind {
	columns := p.Columns()
	has := func(name string) bool { return slices.Contains(columns, name) }
	kinds := []parquetKind{
		{basetenFormat(), hasBaseten, openBasetenParquet},
		{wildChatFormat(), hasWildChat, wildChat.openParquet},
		{lmsysFormat(), hasLMSYS, lmsys.openParquet},
		{langfuseFormat(), hasLangfuse, rowsOpener(openLangfuse).parquet},
		{otelFormat(), hasOpenInference, rowsOpener(openSpans).parquet},
	}
	for _, d := range declaredFormats() {
		kinds = append(kinds, d.parquet())
	}
	for _, kind := range kinds {
		if kind.detect(has) {
			return &kind
		}
	}
	return nil
}

// detects reports whether the format is told by the content: neither a name nor a mapping says all of it.
func (o *Options) detects() bool { return o.Format == "" && (o.Map == nil || o.Map.adds()) }

// plainFormat is that of a source of which a mapping says all.
func plainFormat(head []byte) Format {
	switch {
	case row.IsParquet(head):
		return parquetFormat()
	case record.LooksLikeJSON(head):
		return jsonlFormat()
	}
	return csvFormat()
}

// format finds the format that o asks for or the content shows, and checks that
// the other options suit it.
func (o *Options) format(head []byte) (f Format, err error) {
	switch {
	case o.Format != "":
		named := o.named()
		if named == nil {
			var names []string
			for _, known := range Formats() {
				names = append(names, known.Name)
			}
			const list = "the formats are listed by reprise import --help-all, and without --format it is detected"
			if near := nearNames(o.Format, names); len(near) > 0 {
				return f, fault.Usage("unknown format %q; did you mean %s? (%s)", o.Format, strings.Join(near, ", "),
					list)
			}
			return f, fault.Usage("unknown format %q (%s)", o.Format, list)
		}
		f = *named
	case !o.detects():
		f = plainFormat(head)
	default:
		f, err = detectFormat(head)
		switch unknown := errors.Is(err, errUnrecognised); {
		case unknown && o.Map != nil:
			f, err = plainFormat(head), nil
		case unknown:
			return f, refuseFields(err.Error(), &FieldsError{Inspection: inspectHead(head, *o)})
		}
		if err != nil {
			return f, fault.Refuse(1, 1, err.Error())
		}
	}
	return f, o.checkFor(f)
}

// checkFor checks that the options are right, and right for a format.
func (o *Options) checkFor(f Format) (err error) {
	switch {
	case o.MaxBad < 0 || o.MaxBad > 1 || math.IsNaN(o.MaxBad):
		err = fault.Usage("the tolerated share of bad records is not from 0 to 1")
	case o.TimeUnit != "" && stamp.UnitOf(o.TimeUnit) == 0:
		err = fault.Usage("unknown time unit: want s, ms, us or ns")
	case o.TimeUnit != "" && !f.timed:
		err = fault.Usage("%s has no numeric times that --time-unit could apply to", f.Name)
	case o.TimeFormat != "" && !f.dated:
		err = fault.Usage("%s has times in one layout only, to which --time-format does not apply", f.Name)
	case o.TimeFormat != "" && o.TimeUnit != "":
		err = fault.Usage("--time-unit is for times that are numbers and --time-format for dates: give one of them")
	case o.Delimiter != "" && row.DelimiterNamed(o.Delimiter) == 0:
		err = fault.Usage("--delimiter: want one character or tab, such as --delimiter ';'")
	case o.Decimal != "" && o.Decimal != "point" && o.Decimal != "comma":
		err = fault.Usage("--decimal: want point or comma")
	case o.Decimal != "" && !f.csv:
		err = fault.Usage("%s is no CSV, to which --decimal applies", f.Name)
	case o.Delimiter != "" && !f.csv:
		err = fault.Usage("%s is no CSV, to which --delimiter applies", f.Name)
	case o.Map != nil && !o.Map.fits(f) && f.labels:
		err = fault.Usage("%s has fields of its own for all but %s, which --map can add", f.Name,
			strings.Join(labels, ", "))
	case o.Map != nil && !o.Map.fits(f):
		err = fault.Usage("%s has fixed fields, to which --map adds nothing", f.Name)
	case o.Map == nil && f.mapped && f.detect == nil:
		err = fault.Usage("%s needs --map, which reprise import --inspect proposes; targets: %s", f.Name, targetNames())
	case o.CachedInInput != "" && o.CachedInInput != "yes" && o.CachedInInput != "no":
		err = fault.Usage("--cached-in-input: want yes or no")
	case o.Rows != "" && o.Rows != rowsFull && o.Rows != rowsDelta:
		err = fault.Usage("unknown --rows: want full or delta")
	case o.Rows != "" && !f.rows:
		err = fault.Usage("%s leaves no doubt of what its rows hold: --rows is for dynamo and aiperf", f.Name)
	case (o.PoolStart != 0 || o.PoolSpan != 0) && !f.pool:
		err = fault.Usage("%s is no pool of clients, so no part of it can be expanded", f.Name)
	case o.BlockSize < 0 || !f.sized && (o.BlockSize != 0) != (o.Map["blocks"] != nil):
		err = fault.Usage("--map blocks= and the size of these blocks, --source-block-size, belong together")
	default:
		err = stamp.CheckLayout(o.TimeFormat)
	}
	return err
}

// multiFileFormat finds a format that is made of several files. One file is that only
// when the format is told and has no other way to be read.
func (o *Options) multiFileFormat(files []File) (Format, bool, error) {
	for _, f := range Formats() {
		if f.openFiles == nil || o.Format != "" && o.Format != f.Name || o.Format == "" && !o.detects() {
			continue
		}
		told := o.Format == f.Name && (len(files) > 1 || f.open == nil)
		if !told && (len(files) == 1 || f.detectFiles == nil || !f.detectFiles(files)) {
			continue
		}
		return f, true, o.checkFor(f)
	}
	return Format{}, false, nil
}
