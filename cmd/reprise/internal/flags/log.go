package flags

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // --tz works where the system has no time zones: in a container, on Windows

	"github.com/spf13/pflag"

	"reprise/anonymize"
	"reprise/cmd/reprise/internal/cli"
	"reprise/datasets"
	"reprise/trace"
	"reprise/trace/strictyaml"
	"reprise/trace/token"
)

// Log says how a log is read, and what its rows are.
type Log struct {
	Format    string
	Maps      []string
	MaxBad    float64
	Delimiter string
	Decimal   string
	Rows      string
	Lengths   string
	BlockSize int
	Tokenizer string
	Template  string
	Seed      uint64 // of expanded pools
	Capture   Capture
	Bodies    bool // keep all of the requests' bodies, for a raw file

	timeUnit    string
	timeFormat  string
	tz          string
	zone        *time.Location // of tz, once it is looked up
	longSpan    bool
	sourceBlock int
	keepModel   bool
	cached      string
	poolStart   time.Duration
	poolSpan    time.Duration
}

// Register adds the flags.
func (f *Log) Register(fl *pflag.FlagSet) {
	source, sourceRest := Sections(fl, "Source")
	text, textRest := Sections(fl, "Text")
	_, privacyRest := Sections(fl, PrivacyFlags)
	source.StringVar(&f.Format, "format", "",
		"format of the source, or a file that maps its fields, such as mine.yaml; by default detected by content")
	source.StringArrayVar(&f.Maps, "map", nil,
		"field of a JSONL, CSV or Parquet source, as `target=path`; several separated by commas, or repeat the flag. "+
			"Without a prompt or its length it adds to a known format, such as user=metadata.team")
	source.ShareVar(&f.MaxBad, "max-bad", 0.001, "largest share of bad rows to tolerate")
	source.StringVar(&f.timeUnit, "time-unit", "", "unit of numeric times: s, ms, us or ns; by default detected")
	source.StringVar(&f.timeFormat, "time-format", "",
		"`layout` of dates, such as '%d.%m.%Y %H:%M:%S' or '02.01.2006 15:04:05'; by default detected")
	source.StringVar(&f.Delimiter, "delimiter", "", "`character` between CSV columns, or tab; by default detected")
	source.StringVar(&f.Decimal, "decimal", "",
		"what stands before the decimals of numbers in CSV: point or comma; by default detected")
	source.StringVar(&f.tz, "tz", "", "time zone of times without one, such as Europe/Paris; by default UTC")
	sourceRest.BoolVar(&f.longSpan, "allow-long-span", false, "accept a trace of more than 60 days")
	f.Capture.Register(fl)
	textRest.IntVar(&f.BlockSize, "block-size", 512, "prefix block size in tokens, for text")
	sourceRest.IntVar(&f.sourceBlock, "source-block-size", 0,
		"block size of the source's block ids in tokens, if it does not say")
	text.StringVar(&f.Tokenizer, "tokenizer", "o200k_base", "tokenizer for text: "+strings.Join(token.Names(), ", ")+
		", or the path of a Hugging Face tokenizer.json")
	text.StringVar(&f.Lengths, "lengths", "",
		"token count to use where text and usage contradict each other: usage or text")
	text.StringVar(&f.Template, "template", "none",
		"chat template to count in lengths: "+strings.Join(token.TemplateNames(), ", ")+
			", or the path of a Jinja template, a tokenizer_config.json or a directory with either")
	privacyRest.BoolVar(&f.keepModel, "keep-model", false, "keep model names instead of replacing them by labels")
	sourceRest.StringVar(&f.Rows, "rows", "",
		"content of a later turn, if the source does not say: full (whole prompt) or delta (new part only)")
	sourceRest.StringVar(&f.cached, "cached-in-input", "",
		"whether input counts include cached tokens: yes or no; by default each record tells for itself")
	sourceRest.DurationVar(&f.poolStart, "pool-start", 0, "")
	sourceRest.DurationVar(&f.poolSpan, "pool-span", 0, "")
}

// FindZone looks up the time zone once, in files of the system.
func (f *Log) FindZone() (err error) {
	if f.tz != "" && f.zone == nil {
		if f.zone, err = time.LoadLocation(f.tz); err != nil {
			return cli.Usagef("--tz: %q is no time zone: write its name, such as Europe/Berlin, "+
				"America/New_York or UTC", f.tz)
		}
	}
	return nil
}

// IsFormatFile tells whether --format names a file, in place of a format of the program.
func IsFormatFile(format string) bool {
	ext := filepath.Ext(format)
	return ext == ".yaml" || ext == ".yml"
}

// FormatFile is the file that --format names; empty for none.
func (f *Log) FormatFile() string {
	if IsFormatFile(f.Format) {
		return f.Format
	}
	return ""
}

// Mapping is how fields are mapped, the same for all shards of an import, which keep it to be compared. A file is
// named by its digest: a sample or a comment in it may be somebody's text.
func (f *Log) Mapping() (string, error) {
	mapping := strings.Join(f.Maps, ",")
	if f.FormatFile() == "" {
		return mapping, nil
	}
	text, err := f.formatText()
	return fmt.Sprintf("%sformat-file sha256:%x", mapping, sha256.Sum256(text)), err
}

func (f *Log) formatText() ([]byte, error) {
	text, err := strictyaml.ReadFile(f.FormatFile(), datasets.FormatFileBounds)
	if err != nil {
		return nil, fmt.Errorf("--format: %w", err)
	}
	return text, nil
}

// Open opens a source of these files, or a share of it; nil is all. A share takes any number of
// bad records, since the share of bad ones is that of all shares together.
func (f *Log) Open(files []datasets.File, share *datasets.Share) (*datasets.Source, error) {
	o, err := f.options()
	if err != nil {
		return nil, err
	}
	if o.Share = share; share != nil && f.MaxBad > 0 {
		o.MaxBad = 1
	}
	src, err := datasets.OpenFiles(files, o)
	return src, cli.UsageIf(err, datasets.ErrUsage)
}

// options are how a source is read.
func (f *Log) options() (datasets.Options, error) {
	o := datasets.Options{Format: f.Format, MaxBad: f.MaxBad, TimeUnit: f.timeUnit,
		TimeFormat: f.timeFormat, Delimiter: f.Delimiter, Decimal: f.Decimal, Rows: f.Rows, CachedInInput: f.cached,
		AllowLongSpan: f.longSpan, BlockSize: f.sourceBlock, Seed: f.Seed, PoolStart: f.poolStart,
		PoolSpan: f.poolSpan, Bodies: f.Bodies}
	if f.Rows != "" && f.Rows != "full" && f.Rows != "delta" {
		return o, cli.Usagef("--rows: want full or delta")
	}
	var err error
	if len(f.Maps) > 0 {
		if o.Map, err = datasets.ParseMapping(f.Maps); err != nil {
			return o, cli.Exit(cli.Usage, err)
		}
	}
	if file := f.FormatFile(); file != "" {
		text, err := f.formatText()
		if err != nil {
			return o, err
		}
		if o.Own, err = datasets.ReadFormat(file, text); err != nil {
			return o, cli.Exit(cli.Usage, err)
		}
	}
	if err := f.FindZone(); err != nil {
		return o, err
	}
	o.TZ = f.zone
	o.Capture, err = f.Capture.Window(f.zone)
	return o, err
}

// Policy is how a source is imported.
func (f *Log) Policy(info datasets.Info) (anonymize.Policy, error) {
	p := anonymize.Policy{Tier: anonymize.Internal, BlockSize: f.BlockSize, SourceBlock: info.BlockSize,
		KeepModel: f.keepModel,
		Capture:   f.Capture.Declared, Lengths: f.Lengths}
	if f.Lengths != "" && f.Lengths != anonymize.LengthsUsage && f.Lengths != anonymize.LengthsText {
		return p, cli.Usagef("--lengths: want %s or %s", anonymize.LengthsUsage, anonymize.LengthsText)
	}
	if f.BlockSize < 1 || f.BlockSize > 1<<16 {
		return p, cli.Usagef("--block-size: want 1 to %d tokens", 1<<16)
	}
	var err error
	if p.Template, err = token.OpenTemplateAny(f.Template); err != nil {
		return p, cli.Exit(cli.Usage, err)
	}
	tok, err := token.OpenAny(f.Tokenizer) // also without text, so that a wrong name never passes
	if err != nil {
		return p, cli.Exit(cli.Usage, err)
	}
	if info.HasText {
		p.Tokenizer = tok
	}
	return p, nil
}

// ImportedMeta is the metadata of a trace that was imported. capture is as it was declared, and timing
// how times were made up, empty where the source has them.
func ImportedMeta(card anonymize.Card, info datasets.Info, capture trace.Capture, timing string) (trace.Meta, error) {
	m := trace.Meta{SourceFormat: info.Format, TimeUnit: info.TimeUnit, Timing: timing, Capture: capture,
		Tier: card.Tier, Unit: card.Unit,
		Tokenizer: card.Tokenizer, Template: card.Template, Raw: card.Raw}
	m.Sessions, m.SessionDoubt = SessionsOf(card)
	if card.Totals.Blocks > 0 || capture.Declared() && mayShare(info) {
		m.BlockSize, m.Convention, m.Categories = card.BlockSize, trace.PartialTail, trace.CategoryRule
	}
	card.SourceFields = (*anonymize.SourceFields)(info.Fields)
	var err error
	if m.Card, m.CardHash, err = card.JSON(); err == nil && card.Breakers != nil {
		m.Breakers, err = card.Breakers.JSON()
	}
	return m, err
}

// SessionsOf is what the metadata of a trace says of its sessions.
func SessionsOf(card anonymize.Card) (origin, doubt string) {
	switch t := card.Totals; {
	case t.Inferred.Sessions > 0:
		return "inferred", strconv.FormatFloat(t.Inferred.Doubt, 'f', 3, 64)
	case t.Sessions > 0:
		return "source", ""
	}
	return "", ""
}

// mayShare reports whether a format has fields that tell what prompts share. Of a trace that may be
// released the format says whether there are blocks, since the first row with one is somebody's.
func mayShare(info datasets.Info) bool {
	if info.HasText || info.BlocksHashed || info.Fields == nil {
		return info.HasText || info.BlocksHashed
	}
	fields, _ := datasets.ReadFields(info.Fields.Format, info.Fields.Mapped)
	return slices.ContainsFunc(fields, func(f datasets.SourceField) bool {
		return slices.Contains(f.Columns, "cached_tokens")
	})
}
