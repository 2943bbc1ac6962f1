package anonymize

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"reprise/trace"
	"reprise/trace/breaker"
	"reprise/trace/profile"
)

// A finisher annotates sorted rows and gives them their final ids and names.
type finisher struct {
	p            *Policy
	sorted       *trace.Sorted
	seen         *profile.Annotator // that has counted all rows, whose blocks have their final numbers; nil for none
	answers      answerChains
	keepSessions bool // infer none beside those that rows have
	prefixAlone  bool // rows without any tell of their prefix
	trunks       trunkSurvey
	totals       Totals
	ids          trace.Dense
	numbers      []uint32 // of blocks by their provisional numbers, plus one, where these are not final; 0 for none yet
	numbered     uint32   // blocks that have one
	models       labels
	adapters     labels
	classes      labels
	replicas     labels
	declared     bool  // begin is that of the capture
	begin        int64 // arrival that becomes 0; unless declared, that of the first row
}

// errManyInferred says that the inferred blocks do not fit in memory, before any row is
// written.
var errManyInferred = errors.New("too many blocks to infer in memory")

// finishInMemory writes the rows to dst, with all that is known of blocks in memory.
func (f *finisher) finishInMemory(ctx context.Context, dst trace.Writer[trace.Request]) error {
	a, again := f.seen, f.seen == nil || f.trunks.tells()
	var infer *inferrer // of a pass over the rows; nil for none
	var ids idBatches
	begin := func() {
		if f.trunks.tells() {
			infer = f.trunks.newInferrer(f.p.blockSize(), uint64(f.totals.Blocks), uint64(f.p.limits.inferred))
		}
	}
	fill := func(row int64, r *trace.Request) (err error) {
		if r.Blocks, err = ids.list(r.Blocks); err == nil && r.OutputBlocks != nil {
			r.OutputBlocks, err = ids.list(r.OutputBlocks)
		}
		if infer != nil {
			infer.fill(row, r)
		}
		if again {
			f.renumber(r.Blocks)
			f.renumber(r.OutputBlocks)
		}
		return err
	}
	if begin(); again {
		a = profile.NewAnnotator(f.p.blockSize(), profile.Options{KeepSessions: f.keepSessions})
		err := f.eachRow(ctx, ids.begin, func(row int64, r *trace.Request) error {
			err := fill(row, r)
			a.Count(r)
			return err
		}, nil)
		if err != nil {
			return err
		}
		if infer != nil && infer.stopped {
			return errManyInferred
		}
	}
	begin()
	err := f.eachRow(ctx, ids.begin, func(row int64, r *trace.Request) error {
		if err := fill(row, r); err != nil {
			return err
		}
		a.Annotate(row, r)
		f.totals.Sources.add(r)
		f.ids.ApplyPeople(r)
		f.rename(row, r)
		return nil
	}, dst)
	if infer != nil {
		f.totals.Blocks = int(infer.next)
	}
	f.totals.Inferred = a.Inferred()
	return err
}

// renumber gives blocks numbers in the order of the rows in place of provisional ones.
func (f *finisher) renumber(ids []uint64) {
	for i, id := range ids {
		if missing := int(id) + 1 - len(f.numbers); missing > 0 {
			f.numbers = append(f.numbers, make([]uint32, missing)...)
		}
		n := &f.numbers[id]
		if *n == 0 {
			f.numbered++
			*n = f.numbered
		}
		ids[i] = uint64(*n - 1)
	}
}

// eachRow calls do for all rows with their numbers, and begin before some of them, unless it is nil, and writes
// them to dst, if there is one.
func (f *finisher) eachRow(ctx context.Context, begin func(), do func(row int64, r *trace.Request) error,
	dst trace.Writer[trace.Request]) error {
	return f.sorted.Pass(ctx, func(row int64) {
		if dst != nil {
			f.p.progress("write", row)
		}
		if begin != nil {
			begin()
		}
	}, func(row int64, r *trace.Request) error {
		f.answers.settle(r)
		return do(row, r)
	}, dst)
}

// rename makes times count from the begin and gives labels in place of names.
func (f *finisher) rename(row int64, r *trace.Request) {
	if row == 0 && !f.declared {
		f.begin = r.ArrivalNS
	}
	r.ArrivalNS -= f.begin
	if !f.p.KeepModel {
		r.Model = f.models.name("model", r.Model)
	}
	r.Adapter = f.adapters.name("adapter", r.Adapter)
	r.Class = f.classes.optional("class", r.Class)
	r.Replica = f.replicas.optional("replica", r.Replica)
}

// labels give names by first appearance; the empty name stays empty.
type labels struct{ seen map[string]string }

func (l *labels) name(kind, s string) string {
	if s == "" {
		return ""
	}
	if l.seen == nil {
		l.seen = map[string]string{}
	}
	label, ok := l.seen[s]
	if !ok {
		label = fmt.Sprintf("%s-%d", kind, len(l.seen))
		l.seen[s] = label
	}
	return label
}

func (l *labels) optional(kind string, s *string) *string {
	if s == nil {
		return nil
	}
	return trace.Ptr(l.name(kind, *s))
}

// named gives breakers the names of models and adapters that the rows have.
func (f *finisher) named(b *breaker.Set) *breaker.Set {
	if b == nil {
		return nil
	}
	b.Rename(func(s string) string {
		if f.p.KeepModel {
			return s
		}
		return f.models.name("model", s)
	}, func(s string) string { return f.adapters.name("adapter", s) })
	return b
}

// modelCounts lists the models by the names that they have in the rows.
func (f *finisher) modelCounts(models map[string]*ModelCount) []ModelCount {
	var out []ModelCount
	for name, m := range models {
		if !m.Others {
			m.Template = cmp.Or(m.Template, f.p.Template.For(name).Name)
			m.Model = name
			if !f.p.KeepModel {
				m.Model = f.models.name("model", name)
			}
		}
		count := *m
		count.template = 0
		out = append(out, count)
	}
	slices.SortFunc(out, func(a, b ModelCount) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), strings.Compare(a.Model, b.Model))
	})
	return out
}
