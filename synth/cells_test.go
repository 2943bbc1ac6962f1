package synth

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/trace"
	"reprise/trace/longtest"
	"reprise/trace/profile"
)

// histogramsOf is the file that a profile of rows writes.
func histogramsOf(t testing.TB, rows []trace.Request, meta trace.Meta) []byte {
	t.Helper()
	p := profile.NewProfiler(meta, profile.ProfilerOptions{})
	if _, err := p.Write(rows); err != nil {
		t.Fatal(err)
	}
	return histogramFile(t, p.Histograms(), meta)
}

func histogramFile(t testing.TB, rows []profile.HistogramRow, meta trace.Meta) []byte {
	t.Helper()
	var b bytes.Buffer
	w := trace.NewRowsWriter[profile.HistogramRow](&b, nil)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	meta.Each(w.SetMetadata)
	w.SetMetadata(keySchema, histogramSchema)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func fitHistograms(t testing.TB, b []byte) *Model {
	t.Helper()
	m, err := FitHistograms(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// cellModels are models of cells, with and without blocks and sessions.
func cellModels(t testing.TB) map[string]*Model {
	talked := annotated(talk{block: 16, models: 1}.rows(2, 500), 16)
	bare := slices.Clone(talked)
	for i := range bare {
		bare[i].Blocks, bare[i].Category, bare[i].Session, bare[i].Turn = nil, "", nil, nil
	}
	return map[string]*Model{
		"histograms":                fitHistograms(t, histogramsOf(t, talked, trace.Meta{BlockSize: 16, Tier: "internal", Tokenizer: "o200k_base"})),
		"histograms without blocks": fitHistograms(t, histogramsOf(t, bare, trace.Meta{})),
	}
}

// A workload of cells is a workload as any: well formed, and what it says of its
// rows is what profile finds. It is a function of the model and the seed.
func TestCellsGenerate(t *testing.T) {
	for name, m := range cellModels(t) {
		seen := map[string]bool{}
		for i, o := range []Options{{Seed: 1}, {Seed: 2, Requests: 700}, {Seed: 1, Users: 3, Requests: 900}, {Seed: 1, Duration: time.Duration(m.span / 3)},
			{Seed: 4, Duration: time.Duration(m.span / 10 * 6), Speed: 2}} {
			w, err := m.Generate(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			rows := readAll(t, w.Reader())
			if want := []int{m.Requests(), 700, 900, m.Requests() / 3, m.Requests() * 12 / 10}[i]; len(rows) < want-2 || len(rows) > want+2 {
				t.Errorf("%s: %d rows, want %d", name, len(rows), want)
			}
			if m.meta.BlockSize > 0 {
				wellFormed(t, rows, m.meta.BlockSize)
				agrees(t, rows, m.meta.BlockSize)
			}
			digest := rowDigest(rows)
			if seen[digest] || o.Requests > 0 && rowDigest(generated(t, m, o)) != digest {
				t.Errorf("%s: %+v makes other rows again, or those of another seed", name, o)
			}
			seen[digest] = true
			if w.Meta().Tier != m.meta.Tier {
				t.Errorf("%s: the tier is %q", name, w.Meta().Tier)
			}
		}
	}
}

// The rows of a model and a seed are the same on every machine. The digest was
// written down on amd64.
func TestCellsAreTheSameEverywhere(t *testing.T) {
	m := &Model{kSwap: 1, span: 3600e9, meta: trace.Meta{BlockSize: 16, Digest: "sha256:0123456789ab"}, cells: &cellModel{requests: 500}}
	set := func(k tableKind, g ...group) { m.cells.tables[k] = g }
	set(tableGap, every([]cell{{0, 5e9, 3}, {5e9 + 1, 20e9, 1}}))
	set(tableCategory, every([]cell{{1, 1, 2}, {2, 2, 3}, {4, 4, 6}, {5, 5, 2}}))
	set(tableInput, newGroup(continuation, 0, math.MaxInt64, []cell{{100, 3000, 1}}), every([]cell{{1, 99, 2}, {100, 900, 5}}))
	set(tableOutput, newGroup(anyCategory, 0, 200, []cell{{1, 10, 1}}), every([]cell{{5, 500, 1}}))
	set(tableHit, every([]cell{{1, 3, 1}, {4, 7, 2}}))
	set(tableFresh, newGroup(continuation, 0, math.MaxInt64, []cell{{1, 9, 1}}))
	set(tableTrunk, every([]cell{{4, 4, 1}}))
	set(tableDistance, newGroup(onTemplate, 0, math.MaxInt64, []cell{{1, 60, 1}}), every([]cell{{20, 4000, 1}}))
	set(tableTurn, newGroup(continuation, 0, math.MaxInt64, []cell{{1, 1, 2}, {2, 3, 1}}), every([]cell{{0, 0, 9}, {1, 1, 1}}))
	const want = "sha256:869981c8078543a7cfb258729630a229f6897f7633ef6a47f0305352bd27f7e4"
	if got := rowDigest(generated(t, m, Options{Seed: 5, Users: 2, Speed: 1.7})); got != want {
		t.Errorf("the digest is %s, want %s", got, want)
	}
}

func TestCellFileRoundTrip(t *testing.T) {
	for name, m := range cellModels(t) {
		got, err := read(written(t, m))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !reflect.DeepEqual(got, m) {
			t.Errorf("%s: another model came back:\n%+v\n%+v", name, got, m)
		}
	}
}

// rewrittenCells writes a model of cells again, changed.
func rewrittenCells(t testing.TB, m *Model, change func(rows []cellRow) []cellRow, meta map[string]string) []byte {
	t.Helper()
	b := written(t, m)
	in, err := trace.NewRowsReader[cellRow](bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := trace.NewRowsWriter[cellRow](&out, nil)
	rows := make([]cellRow, in.Rows())
	if _, err := in.Read(rows); err != nil && int64(len(rows)) != in.Rows() {
		t.Fatal(err)
	}
	if change != nil {
		rows = change(rows)
	}
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	keys := []string{keySchema, keyKind, keyRequests, keySpan, keyBlock, keyPrivacy}
	for _, p := range inherited(&trace.Meta{}) {
		keys = append(keys, p.key)
	}
	for _, key := range keys {
		if v, ok := in.Metadata(key); ok {
			w.SetMetadata(key, v)
		}
	}
	for key, v := range meta {
		w.SetMetadata(key, v)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestCellFileDamaged(t *testing.T) {
	m := cellModels(t)["histograms"]
	if _, err := read(rewrittenCells(t, m, nil, nil)); err != nil {
		t.Fatalf("undamaged: %v", err)
	}
	last := int64(math.MaxInt64)
	for name, c := range map[string]struct {
		change func(r *cellRow)
		want   string
	}{
		"another count":   {func(r *cellRow) { r.Count++ }, "damaged"},
		"a table":         {func(r *cellRow) { r.Table = "output" }, "table"},
		"order of tables": {func(r *cellRow) { r.Table = tableNames[tableTurn] }, "out of order"},
		"a category":      {func(r *cellRow) { r.Category = "" }, "category"},
		"no count":        {func(r *cellRow) { r.Count = 0 }, "count"},
		"a great count":   {func(r *cellRow) { r.Count = last }, "count"},
		"a great sum":     {func(r *cellRow) { r.Count = maxWeight }, "add up"},
		"given":           {func(r *cellRow) { r.From = 5; r.To = 4 }, "given"},
		"upside down":     {func(r *cellRow) { r.Hi = r.Lo - 1 }, "values"},
		"far":             {func(r *cellRow) { r.Hi = last }, "values"},
		"negative":        {func(r *cellRow) { r.Lo = -1 }, "values"},
		"overlap":         {func(r *cellRow) { r.Lo = 0 }, "above"},
	} {
		_, err := read(rewrittenCells(t, m, func(rows []cellRow) []cellRow {
			i := slices.IndexFunc(rows, func(r cellRow) bool { return r.Table == tableNames[tableInput] }) + 2
			c.change(&rows[i])
			return rows
		}, nil))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, k := range []tableKind{tableInput, tableOutput, tableDistance} {
		_, err := read(rewrittenCells(t, m, func(rows []cellRow) []cellRow {
			return slices.DeleteFunc(rows, func(r cellRow) bool { return r.Table == tableNames[k] })
		}, nil))
		if err == nil {
			t.Errorf("without %s: no error", tableNames[k])
		}
	}
	for _, kv := range [][2]string{{keySchema, "model/3"}, {keyKind, "tuples"}, {keyRequests, "0"}, {keyRequests, "x"}, {keySpan, "5"}, {keyBlock, "0"}, {keyBlock, "32"},
		{"reprise.digest", "sha256:00"}} {
		if _, err := read(rewrittenCells(t, m, nil, map[string]string{kv[0]: kv[1]})); err == nil {
			t.Errorf("%s = %s: no error", kv[0], kv[1])
		}
	}
}

// Whatever a file of cells holds, reading it gives a model that generates, or an
// error; so does any file of histograms.
func FuzzCells(f *testing.F) {
	for _, m := range cellModels(f) {
		f.Add(written(f, m))
	}
	f.Add(histogramsOf(f, annotated(talk{block: 16, models: 1}.rows(2, 60), 16), trace.Meta{BlockSize: 16}))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := read(b)
		if err != nil {
			if m, err = FitHistograms(bytes.NewReader(b), int64(len(b))); err != nil {
				return
			}
		}
		fewRows(t, m)
	})
}

// fewRows generates some rows that are not too long.
func fewRows(t *testing.T, m *Model) {
	w, err := m.Generate(t.Context(), Options{Requests: 20})
	if err != nil {
		return
	}
	for i := range w.populations[0].forest.length {
		if w.populations[0].forest.length[i] > 1<<16 {
			return
		}
	}
	readAll(t, w.Reader())
}

// Rows that pass every check make a model that generates, however odd they are.
func FuzzCellRows(f *testing.F) {
	f.Add(uint8(3), uint8(1), int64(0), int64(500), int64(3), int64(700), int64(9))
	f.Add(uint8(9), uint8(2), int64(0), int64(1<<62), int64(1), int64(1<<60), int64(1<<60))
	f.Fuzz(func(t *testing.T, table, c uint8, from, to, lo, hi, count int64) {
		names := append([]string{namedAny, namedNone}, trace.Categories()...)
		odd := cellRow{Table: tableNames[int(table)%int(tableKinds)], Category: names[int(c)%len(names)], From: from, To: to, Lo: lo, Hi: hi, Count: count}
		all := func(k tableKind, lo, hi int64) cellRow {
			return cellRow{Table: tableNames[k], Category: namedAny, To: math.MaxInt64, Lo: lo, Hi: hi, Count: 3}
		}
		rows := []cellRow{all(tableGap, 0, 999), all(tableCategory, 0, 5), all(tableInput, 0, 3000), all(tableOutput, 0, 9), all(tableHit, 0, 90),
			all(tableDistance, 0, 1000), all(tableTurn, 0, 5)}
		at := slices.IndexFunc(rows, func(r cellRow) bool { return slices.Index(tableNames[:], r.Table) >= int(table)%int(tableKinds) })
		rows = slices.Insert(rows, max(0, at), odd)
		m := &Model{kSwap: 1, span: 1000, meta: trace.Meta{BlockSize: 16, Digest: "sha256:0123456789ab"}, cells: &cellModel{requests: 20}}
		b := cellReader{m: m, at: -1}
		for i := range rows {
			if b.add(&rows[i]) != "" {
				return
			}
		}
		if b.finish() != nil {
			return
		}
		m.finish()
		fewRows(t, m)
	})
}

// What a model of histograms keeps of the Mooncake conversation trace, over five seeds: the
// curve of hit ratios and each length by itself; what goes with what is lost.
func TestHistogramsKeepMooncake(t *testing.T) {
	longtest.Skip(t)
	meta := trace.Meta{BlockSize: 512, Convention: trace.PartialTail, Tier: "internal"}
	rows := annotated(mooncake(t), 512)
	m := fitHistograms(t, histogramsOf(t, rows, meta))
	if m.meta.Tier != "internal" {
		t.Errorf("the metadata are %+v", m.meta)
	}
	const seeds = 5
	sums := map[string]float64{}
	for seed := range uint64(seeds) {
		w, err := m.Generate(t.Context(), Options{Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		for name, x := range Compared(t, meta, rows, w.Meta(), readAll(t, w.Reader())).Distance {
			sums[name] += opt2(x) / seeds
		}
	}
	for name, limit := range map[string]float64{"requests": 0, "input_tokens": 0.02, "output_tokens": 0.02, "input_ks": 0.02, "output_ks": 0.02, "mrc_mae": 0.01,
		"hit_by_block": 0.01, "categories": 0.05, "duration_s": 0.01, "turns_ks": 0.05, "iat_cv": 0.1} {
		t.Logf("%s %.4f", name, sums[name])
		if !(sums[name] <= limit) {
			t.Errorf("%s is %.4f on average, want at most %g", name, sums[name], limit)
		}
	}
}

func TestFitHistogramsRefuses(t *testing.T) {
	good := profile.HistogramRow{Metric: profile.MetricInput, Lo: 5, Hi: 6, Count: 3}
	out := profile.HistogramRow{Metric: profile.MetricOutput, Lo: 5, Hi: 6, Count: 3}
	gap := profile.HistogramRow{Metric: profile.MetricInterArrival, Lo: 65536, Hi: 66560, Count: 2}
	hit := profile.HistogramRow{Metric: profile.MetricHitBlocks, Category: trace.Branch, Lo: 1, Hi: 2, Count: 2}
	for name, rows := range map[string][]profile.HistogramRow{
		"nothing": {}, "no output": {good, gap}, "no gaps": {good, out}, "an edge": {good, out, {Metric: profile.MetricInput, Lo: 6, Hi: 8, Count: 1}, gap},
		"blocks of no size": {good, out, gap, {Metric: profile.MetricHitBlocks, Lo: 1, Hi: 2, Count: 2}, hit},
	} {
		b := histogramFile(t, rows, trace.Meta{})
		if _, err := FitHistograms(bytes.NewReader(b), int64(len(b))); err == nil || errors.Is(err, ErrNotHistograms) {
			t.Errorf("%s: %v", name, err)
		}
	}
	fitHistograms(t, histogramFile(t, []profile.HistogramRow{good, out, gap}, trace.Meta{}))
	b := written(t, cellModels(t)["histograms"])
	if _, err := FitHistograms(bytes.NewReader(b), int64(len(b))); !errors.Is(err, ErrNotHistograms) {
		t.Errorf("a model: %v", err)
	}
}
