package audit

import (
	"context"
	"io"
	"strings"

	"reprise/anonymize"
	"reprise/trace"
)

// A Case is an output to judge, and what the judge knows besides.
type Case struct {
	Output   *Output
	Log      *Log         // the source log; nil when it is not given
	Internal *trace.Trace // of tier internal, made of the source; nil when it is not given
	Others   []*Output    // of the same source, to read together with Output
	Canaries []string     // planted in the source; one of digits alone is a number
	Guesses  []string     // texts that somebody outside may know, such as a public system prompt

	Paths   []string // of the inputs: findings do not name them, since a result may be published
	Seed    uint64   // of what checks draw
	Version string   // of the tool

	// Progress, when set, is called when a check begins.
	Progress func(check string)

	before *trace.Trace // made of Log
}

// A Log is a source log, with the settings by which it was imported.
type Log struct {
	Policy anonymize.Policy // its workers' number and progress are the judge's own
	Open   func() (*Opened, error)
}

// Opened is a source log that is being read, once.
type Opened struct {
	Entries trace.EntryReader
	Meta    func(anonymize.Card) (trace.Meta, error) // of the trace made of it; called after the last entry
	Close   func() error
}

// Before returns the rows of tier internal that the output was made from: those of
// Internal, or those of an import of Log, which is done once. A check that calls it
// has [NeedsBefore].
func (c *Case) Before(ctx context.Context) (anonymize.Source, error) {
	t := c.Internal
	if t == nil && c.before == nil {
		var err error
		if c.before, err = c.importLog(ctx); err != nil {
			return anonymize.Source{}, err
		}
	}
	if t == nil {
		t = c.before
	}
	return sourceOf(t), nil
}

func sourceOf(t *trace.Trace) anonymize.Source {
	return anonymize.Source{Meta: t.Meta, Open: func() (trace.Reader[trace.Request], error) { return t.Reader() }}
}

// importLog imports the source log into a private trace.
func (c *Case) importLog(ctx context.Context) (*trace.Trace, error) {
	log, err := c.Log.Open()
	if err != nil {
		return nil, err
	}
	defer log.Close()

	return trace.Private("", func(dst trace.Writer[trace.Request]) (trace.Meta, error) {
		card, err := anonymize.Run(ctx, c.Log.Policy, log.Entries, dst)
		if err != nil {
			return trace.Meta{}, err
		}
		return log.Meta(card)
	})
}

// Close frees what the checks made. The caller closes Output, Internal and Log.
func (c *Case) Close() error {
	if c.before == nil {
		return nil
	}
	return c.before.Close()
}

// withoutPaths takes names of files out of a sentence.
func (c *Case) withoutPaths(s string) string {
	for _, path := range c.Paths {
		if path != "" {
			s = strings.ReplaceAll(s, path, "the source")
		}
	}
	if c.Output.path != "" {
		s = strings.ReplaceAll(s, c.Output.path, "the output")
	}
	return s
}

func eachRequest(ctx context.Context, rows trace.Reader[trace.Request], f func(r *trace.Request)) error {
	batch := make([]trace.Request, 512)
	for {
		n, err := rows.Read(batch)
		for i := range batch[:n] {
			f(&batch[i])
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		}
	}
}

// eachRow reads all rows of a source.
func eachRow(ctx context.Context, src anonymize.Source, f func(row int64, r *trace.Request) error) error {
	rows, err := src.Open()
	if err != nil {
		return err
	}
	return trace.Each(rows, func(row int64, r *trace.Request) error {
		if row%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		return f(row, r)
	})
}
