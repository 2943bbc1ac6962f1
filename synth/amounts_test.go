package synth

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"reprise/trace"
)

// How many requests each population makes, and in which span of the model's time.
func TestAmountsOfOptions(t *testing.T) {
	m := &Model{span: 1000, places: make([]place, 10)}
	const few, long, none, slow = "a workload has at most 2^31-1 requests within 2^62 nanoseconds: ask for fewer requests", "the duration is too long",
		"the duration is too short for one request: raise it", "at this speed the workload takes more than 2^62 nanoseconds: raise the speed"
	for _, c := range []struct {
		o      Options
		counts []int64
		span   int64
		err    string
	}{
		{Options{}, []int64{10}, 1000, ""},
		{Options{Users: 3}, []int64{10, 10, 10}, 1000, ""},
		{Options{Speed: 4}, []int64{10}, 1000, ""},
		{Options{Requests: 25}, []int64{25}, 2500, ""},
		{Options{Requests: 25, Users: 2}, []int64{12, 13}, 1250, ""},
		{Options{Requests: 1, Users: 2}, []int64{0, 1}, 50, ""},
		{Options{Duration: 250}, []int64{2}, 250, ""},
		{Options{Duration: 250, Users: 2}, []int64{2, 3}, 250, ""},
		{Options{Duration: 250, Speed: 3}, []int64{7}, 750, ""},
		{Options{Duration: 100}, []int64{1}, 100, ""},
		{Options{Duration: 99}, nil, 0, none},
		{Options{Duration: math.MaxInt64, Speed: 2}, nil, 0, long},
		{Options{Duration: 1 << 62}, nil, 0, long},
		{Options{Requests: math.MaxInt32}, nil, 0, few},
		{Options{Requests: math.MaxInt32 - 1}, []int64{math.MaxInt32 - 1}, (math.MaxInt32 - 1) * 100, ""},
		{Options{Speed: 1e-300}, nil, 0, slow},
		{Options{Speed: 1e-15}, []int64{10}, 1000, ""},
		{Options{Speed: 1e-16}, nil, 0, slow},
	} {
		if err := c.o.check(); err != nil {
			t.Fatal(err)
		}
		counts, span, err := m.amounts(c.o)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if !slices.Equal(counts, c.counts) || span != c.span || got != c.err {
			t.Errorf("%+v: %d requests in %d ns, %q; want %d in %d, %q", c.o, counts, span, got, c.counts, c.span, c.err)
		}
	}
	short := &Model{span: 1, places: make([]place, 10)}
	if _, span, err := short.amounts(Options{Requests: 1, Users: 1, Speed: 1}); span != 1 || err != nil {
		t.Errorf("a span of %d, %v", span, err)
	}
	long62 := &Model{span: math.MaxInt64/2 - 1, places: make([]place, 10)}
	for n, want := range map[int64]string{10: "", 11: few} {
		if _, _, err := long62.amounts(Options{Requests: n, Users: 1, Speed: 2}); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%d requests of a long model: %v", n, err)
		}
	}
}

func TestOptionsChecked(t *testing.T) {
	const speed, negative, both = "the speed must be above 0", "neither requests nor a duration can be negative", "give requests or a duration, not both: the model's rate sets the other"
	for _, c := range []struct {
		o, want Options
		err     string
	}{
		{Options{}, Options{Users: 1, Speed: 1}, ""},
		{Options{Users: -4, Speed: 0.5}, Options{Users: 1, Speed: 0.5}, ""},
		{Options{Users: 1 << 16, Requests: 1}, Options{Users: 1 << 16, Speed: 1, Requests: 1}, ""},
		{Options{Users: 1<<16 + 1}, Options{}, "more than 65536 populations of users"},
		{Options{Duration: 1}, Options{Users: 1, Speed: 1, Duration: 1}, ""},
		{Options{Speed: -1}, Options{}, speed},
		{Options{Speed: math.NaN()}, Options{}, speed},
		{Options{Speed: math.Inf(1)}, Options{}, speed},
		{Options{Requests: -1}, Options{}, negative},
		{Options{Duration: -1}, Options{}, negative},
		{Options{SharedAbove: -1}, Options{}, negative},
		{Options{SharedAbove: 3, Users: 2}, Options{Users: 2, Speed: 1}, ""},
		{Options{Requests: 1, Duration: 1}, Options{}, both},
	} {
		o, got := c.o, ""
		if err := o.check(); err != nil {
			got = err.Error()
		}
		if got != c.err || got == "" && (o.Users != c.want.Users || o.Speed != c.want.Speed || o.Requests != c.want.Requests || o.Duration != c.want.Duration) {
			t.Errorf("%+v: %+v, %q; want %+v, %q", c.o, o, got, c.want, c.err)
		}
	}
}

// Generating tells how many requests are placed, of all populations together, and
// ends when it is told to.
func TestGenerateTellsProgress(t *testing.T) {
	m := someCells()
	var told []int64
	o := Options{Requests: 2*progressRows + 2, Progress: func(n int64) { told = append(told, n) }}
	if _, err := m.Generate(t.Context(), o); err != nil || !slices.Equal(told, []int64{0, progressRows, 2 * progressRows}) {
		t.Errorf("told %d, %v", told, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	told, o.Progress = nil, func(n int64) {
		told = append(told, n)
		cancel()
	}
	if w, err := m.Generate(ctx, o); w != nil || !errors.Is(err, context.Canceled) || len(told) != 1 {
		t.Errorf("ended after %d with %v", told, err)
	}
}

// What a workload says of itself.
func TestWorkloadMeta(t *testing.T) {
	source := trace.Meta{BlockSize: 16, Tier: "internal", Card: "{}", CardHash: "ab", Digest: "sha256:0123456789abcdef", SourceFormat: "jsonl"}
	blockless := source
	blockless.BlockSize, blockless.SourceFormat = 0, ""
	inferred := source
	inferred.Sessions = "inferred"
	const own = "synth of jsonl, model 0123456789ab"
	for name, c := range map[string]struct {
		m        Model
		o        Options
		format   string
		sessions string
	}{
		"few places":     {Model{meta: source, kSwap: 10, places: make([]place, 1999)}, Options{Speed: 1, Users: 1, Seed: 7}, own + ", k_swap 10, fitted to 1999 requests (few: below 2000)", ""},
		"enough places":  {Model{meta: source, kSwap: 1, places: make([]place, 2000)}, Options{Speed: 1, Users: 1, Seed: 7}, own + ", k_swap 1", ""},
		"inferred ones":  {Model{meta: inferred, kSwap: 1, places: make([]place, 2000), sourced: true}, Options{Speed: 1, Users: 1, Seed: 7}, own + ", k_swap 1", "inferred"},
		"of before":      {Model{meta: inferred, kSwap: 1, places: make([]place, 2000)}, Options{Speed: 1, Users: 1, Seed: 7}, own + ", k_swap 1", "inferred"},
		"cells":          {Model{meta: source, kSwap: 1, cells: &cellModel{}}, Options{Speed: 0.5, Users: 2, Seed: 7}, own + ", users 2, speed 0.5", "inferred"},
		"its sessions":   {Model{meta: source, cells: &cellModel{}, sourced: true}, Options{Speed: 1, Users: 1, Seed: 7, Duration: time.Hour}, own, "source"},
		"without blocks": {Model{meta: blockless, cells: &cellModel{}}, Options{Speed: 1, Seed: 7}, "synth of a trace, model 0123456789ab", ""},
		"only sessions":  {Model{meta: blockless, cells: &cellModel{}, sourced: true}, Options{Speed: 1, Seed: 7}, "synth of a trace, model 0123456789ab", "source"},
	} {
		want := c.m.meta
		want.Digest, want.Seed, want.SourceFormat, want.Sessions = "", "7", c.format, c.sessions
		if want.BlockSize > 0 {
			want.Convention, want.Categories = "partial-tail", trace.CategoryRule
		}
		if got := (&Workload{model: &c.m, options: c.o}).Meta(); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}
