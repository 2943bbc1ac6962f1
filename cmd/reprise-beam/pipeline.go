package main

import (
	"context"
	"iter"
	"reflect"
	"runtime"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"reprise/cmd/reprise/beam/internal/stage"
)

// Everything that crosses the engine or runs on a worker is registered before beam.Init: what is
// missing fails when the first bundle runs on another machine, and not before.
func init() {
	register.DoFn3x1[context.Context, int, func(stage.Shard), error]((*importFn)(nil))
	register.DoFn4x1[stage.Shard, func(*stage.Figures), func(int64, []byte), func(int, []byte), error]((*readFn)(nil))
	register.Function3x1(measureMinute)
	register.DoFn3x1[int, func(*[]byte) bool, func(*stage.Figures), error]((*partFn)(nil))
	register.Combiner1[*stage.Figures]((*mergeFn)(nil))
	register.DoFn1x1[*stage.Figures, error]((*profileFn)(nil))
	register.DoFn3x1[context.Context, int, func(*stage.Shard) bool, error]((*finishFn)(nil))
	register.Function1x2(together)
	register.Emitter1[stage.Shard]()
	register.Emitter1[*stage.Figures]()
	register.Emitter2[int64, []byte]()
	register.Emitter2[int, []byte]()
	register.Iter1[[]byte]()
	register.Iter1[stage.Shard]()
	beam.RegisterType(reflect.TypeFor[stage.Shard]())
	beam.RegisterType(reflect.TypeFor[stage.Job]())
	beam.RegisterCoder(reflect.TypeFor[*stage.Figures](), stage.Encode, stage.Decode)
}

// build makes the pipeline. Numbers of shards go to workers, and names of shards from there on; of their
// rows sums, arrivals by minute and references by part of the blocks. Each grouping is ordered by the
// worker that gets it.
func build(s beam.Scope, job stage.Job) {
	numbers := make([]int, job.Shards)
	for i := range numbers {
		numbers[i] = i
	}
	// A reshuffle spreads the shards over the workers; the second one keeps what follows from importing again.
	shards := beam.Reshuffle(s,
		beam.ParDo(s.Scope("import"), &importFn{job}, beam.Reshuffle(s, beam.CreateList(s, numbers))))

	profile := s.Scope("profile")
	sums, arrivals, references := beam.ParDo3(profile, &readFn{job}, shards)
	minutes := beam.ParDo(profile, measureMinute, beam.GroupByKey(profile, arrivals))
	parts := beam.ParDo(profile, &partFn{job.OneIn}, beam.GroupByKey(profile, references))
	beam.ParDo0(profile, &profileFn{job},
		beam.Combine(profile, &mergeFn{}, beam.Flatten(profile, sums, minutes, parts)))

	finish := s.Scope("finish")
	beam.ParDo0(finish, &finishFn{job}, beam.GroupByKey(finish, beam.ParDo(finish, together, shards)))
}

// importFn imports one shard. Its settings travel in the job's description, which engines print and keep.
type importFn struct{ Job stage.Job }

// importing has as many places as shards are imported at once by one process: each keeps about three cores
// busy. Engines give a process several bundles at a time, and more of them would only take memory.
var importing = make(chan struct{}, (runtime.GOMAXPROCS(0)+2)/3)

// ProcessElement takes the number of a shard.
func (f *importFn) ProcessElement(ctx context.Context, index int, emit func(stage.Shard)) error {
	select {
	case importing <- struct{}{}:
		defer func() { <-importing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	s, err := f.Job.Import(ctx, index)
	if err == nil {
		emit(s)
	}
	return err
}

// readFn reads one shard and groups what a profile needs.
type readFn struct{ Job stage.Job }

// ProcessElement takes a shard.
func (f *readFn) ProcessElement(s stage.Shard, sums func(*stage.Figures), arrivals func(int64, []byte),
	references func(int, []byte)) error {
	return f.Job.Read(s, stage.Sink{Figures: sums, Arrivals: arrivals, References: references})
}

// all are the values of a group.
func all(next func(*[]byte) bool) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for b := []byte(nil); next(&b) && yield(b); {
		}
	}
}

func measureMinute(window int64, next func(*[]byte) bool, emit func(*stage.Figures)) error {
	f, err := stage.MeasureMinute(window, all(next))
	if err == nil {
		emit(f)
	}
	return err
}

// partFn measures one part of the blocks.
type partFn struct{ OneIn int }

// ProcessElement takes the references to the blocks of a part.
func (f *partFn) ProcessElement(part int, next func(*[]byte) bool, emit func(*stage.Figures)) error {
	figures, err := stage.MeasurePart(part, f.OneIn, all(next))
	if err == nil {
		emit(figures)
	}
	return err
}

// mergeFn merges figures.
type mergeFn struct{}

// CreateAccumulator returns no figures.
func (*mergeFn) CreateAccumulator() *stage.Figures { return new(stage.Figures) }

// MergeAccumulators merges two.
func (*mergeFn) MergeAccumulators(a, b *stage.Figures) *stage.Figures {
	a.Merge(b)
	return a
}

// profileFn writes the profile.
type profileFn struct{ Job stage.Job }

// ProcessElement takes the figures of all rows.
func (f *profileFn) ProcessElement(figures *stage.Figures) error { return f.Job.WriteProfile(figures) }

// together gives all shards one key.
func together(s stage.Shard) (int, stage.Shard) { return 0, s }

// finishFn makes the trace of all shards.
type finishFn struct{ Job stage.Job }

// ProcessElement takes all shards.
func (f *finishFn) ProcessElement(ctx context.Context, _ int, next func(*stage.Shard) bool) error {
	var shards []stage.Shard
	for s := (stage.Shard{}); next(&s); s = (stage.Shard{}) {
		shards = append(shards, s)
	}
	return f.Job.Finish(ctx, shards)
}
