package fidelity

import (
	"errors"
	"fmt"
	"time"

	"reprise/trace"
	"reprise/trace/block"
)

// Options are the settings of a [Signature].
type Options struct {
	// From is the share of the duration, from 0 up to 1, after which requests
	// count: 0.5 measures the second half with the first as its history. What
	// came before is known to caches, sessions and categories, and in no figure.
	From float64
	// WarmUp is the same as a time from the first arrival. The later of the two
	// holds.
	WarmUp time.Duration
	// BlockSize is the block size in tokens to measure by: 0 for that of the
	// trace, or a multiple of it, see [CommonBlockSize].
	BlockSize int
}

// A Signature gathers what [Compare] needs to know of a trace or a workload. It
// implements [trace.Writer]: give it all rows in order of arrival.
//
// Categories and inferred sessions are not taken from the rows but found again,
// so that a real trace and a synthetic one are sorted by the same rule. That
// takes the rows more than once, and so does a warm-up that is a share of a
// duration not known yet: the columns that count are kept, beyond 48 MiB in a
// private spill file, until the first [Compare] reads them. Nothing can be
// written from then on. A row that names fewer blocks than its length takes has
// others that nothing shares: they are completed as [synth.Unshared] does.
//
// Memory, beside that: some 120 bytes for each distinct block and 48 for each
// session, 16 for each distinct length, and at most 150 MB for what has a
// bound: the rows, or an even sample of them, for what correlates (see
// [sampleLimit]), and the distinct pairs of lengths. Times are counted in the
// log-linear buckets of [profile.Histogram].
//
// It is for one goroutine.
type Signature struct {
	meta   trace.Meta
	opts   Options
	size   int // tokens in a block as measured; 0 without blocks
	joined int // blocks of the trace in one of these

	rows        *trace.Sorter
	one         [1]trace.Request
	ids         trace.Renumber
	named       uint64 // distinct blocks that rows name
	read        int64  // rows so far
	failed      int64
	first, last int64 // arrivals of requests that did not fail
	at          int64 // arrival of the row before

	limits signatureLimits
	tally  *signatureTally // what was measured; nil before the first Compare
	err    error
}

// signatureLimits are up to how many of each are kept; tests lower them.
type signatureLimits struct{ rows, pairs int }

// sampleLimit is up to how many requests correlations, the two-dimensional distance
// and, counting distinct pairs of lengths, the pair match are exact. Of more
// requests, a sample of half to all of this number is taken, by a hash of their
// row; of more pairs, one by a hash of the pair, so that both traces keep the
// same ones.
const sampleLimit = 1 << 20

// NewSignature begins the signature of the trace that meta describes.
func NewSignature(meta trace.Meta, opts Options) *Signature {
	s := &Signature{meta: meta, opts: opts, size: meta.BlockSize, joined: 1,
		rows: trace.NewSorter(""), limits: signatureLimits{rows: sampleLimit, pairs: sampleLimit}}
	if meta.BlockSize < 1 {
		s.size = 0
	} else if opts.BlockSize > 0 {
		s.size, s.joined = opts.BlockSize, opts.BlockSize/meta.BlockSize
		if opts.BlockSize%meta.BlockSize != 0 {
			s.err = fmt.Errorf("blocks of %d tokens cannot be measured as blocks of %d", meta.BlockSize, opts.BlockSize)
		}
	}
	return s
}

// CommonBlockSize is the block size in tokens by which the traces that ref and
// cand describe can be compared. Ids are chained, so the id of a block stands
// for all of the prompt up to its end: where one size is a multiple of the
// other, every so many-th id of the finer trace, and the last of a row, are the
// ids of the coarser blocks. Any other two sizes cut prompts at different
// places, and ids do not tell what lies between them: an error, as are
// different conventions. The size is 0 when either trace has no blocks.
func CommonBlockSize(ref, cand trace.Meta) (int, error) {
	fine, coarse := min(ref.BlockSize, cand.BlockSize), max(ref.BlockSize, cand.BlockSize)
	switch {
	case fine < 1:
		return 0, nil
	case ref.Convention != cand.Convention:
		return 0, errors.New("the two follow different conventions for the last block of a prompt, and ids of one cannot " +
			"be turned into those of the other: import both anew")
	case coarse%fine != 0:
		return 0, fmt.Errorf("the reference has blocks of %d tokens and the candidate of %d: neither is a multiple of the "+
			"other, so they cut prompts at different places; import both with one --block-size", ref.BlockSize, cand.BlockSize)
	}
	return coarse, nil
}

// Write implements [trace.Writer]. It keeps nothing of the batch.
func (s *Signature) Write(rows []trace.Request) (int, error) {
	for i := range rows {
		if err := s.write(&rows[i]); err != nil {
			return i, err
		}
	}
	return len(rows), nil
}

func (s *Signature) write(r *trace.Request) error {
	switch {
	case s.err != nil:
		return s.err
	case s.tally != nil:
		return errors.New("the signature was compared already: it takes no more rows")
	case s.read > 0 && r.ArrivalNS < s.at:
		return fmt.Errorf("row %d arrives before row %d: a trace is sorted by arrival", s.read, s.read-1)
	case r.InputTokens < 0 || r.OutputTokens < 0:
		return fmt.Errorf("row %d: a token count is negative", s.read)
	}
	s.read++
	s.at = r.ArrivalNS
	if r.Status == trace.StatusFailed {
		s.failed++
		return nil
	}
	if s.read-s.failed == 1 {
		s.first = r.ArrivalNS
	}
	s.last = r.ArrivalNS
	s.one[0] = trace.Request{ArrivalNS: r.ArrivalNS, InputTokens: r.InputTokens, OutputTokens: r.OutputTokens,
		ThinkNS: r.ThinkNS, Blocks: s.blocks(r)}
	if s.meta.Sessions == sourceSessions {
		s.one[0].Session = r.Session
	}
	s.named = uint64(s.ids.Len())
	_, err := s.rows.Write(s.one[:])
	return err
}

// blocks returns the row's blocks as measured, numbered densely.
func (s *Signature) blocks(r *trace.Request) []uint64 {
	if s.size == 0 {
		return nil
	}
	out := s.one[0].Blocks[:0]
	for i := s.joined - 1; i < len(r.Blocks); i += s.joined {
		out = append(out, s.ids.ID(r.Blocks[i]))
	}
	// The last id stands for a partial block only if no more were left away.
	n := len(r.Blocks)
	if n%s.joined != 0 && n >= block.Count(int(r.InputTokens), s.meta.BlockSize) {
		out = append(out, s.ids.ID(r.Blocks[n-1]))
	}
	return out
}

// warmUp is the time in ns from the first arrival until requests count.
func (s *Signature) warmUp() int64 {
	return max(int64(s.opts.From*float64(s.last-s.first)), int64(s.opts.WarmUp), 0)
}

// measured reads the rows, once, and returns what they told.
func (s *Signature) measured() (*signatureTally, error) {
	if s.tally != nil || s.err != nil {
		return s.tally, s.err
	}
	s.tally, s.err = s.measure()
	return s.tally, s.err
}
